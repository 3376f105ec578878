#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
master_addr=$(hostname)
export MASTER_ADDR=$MASTER_ADDR
srun python train.py
# site: unknown
# expect: 5 variable-name-mismatch
