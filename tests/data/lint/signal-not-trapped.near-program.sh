#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=USR1@120
trap 'rm -f lock' EXIT
srun python train.py
# site: unknown
