#!/bin/bash
# per-worker settings, then the trainer
. conf/worker${RANK}.sh
export OMP_NUM_THREADS=1
exec python -u -m trainer.cli --lr 0.05 --steps 15 $EXTRA "$@"
