#!/bin/bash
DATA_DIR=/scratch/data
srun python train.py --data "$DATADIR"
# site: unknown
# expect: 3 variable-name-mismatch
