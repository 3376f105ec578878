#!/bin/bash -e
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun python train.py
echo done
# site: unknown
