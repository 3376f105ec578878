#!/bin/bash
#SBATCH --account=g123
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
srun python $SCRATCH/train.py
# site: alps-gh200
