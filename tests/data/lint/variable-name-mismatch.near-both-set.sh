#!/bin/bash
DATA_DIR=/scratch/data
DATADIR=/flash/data
echo "$DATA_DIR"
srun python train.py --data "$DATADIR"
# site: unknown
