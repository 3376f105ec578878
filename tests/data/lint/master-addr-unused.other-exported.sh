#!/bin/bash
MASTER_ADDR=$(hostname -i)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_PORT
srun python train.py
# site: unknown
# expect: 2 master-addr-unused
