#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export MASTER_ADDR=localhost
srun python train.py
# site: unknown
