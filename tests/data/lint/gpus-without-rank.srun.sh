#!/bin/bash
#SBATCH -N 2
#SBATCH --gpus=16
#SBATCH --exclusive
#SBATCH --time=10
srun --cpu-bind=cores python train_hvd.py
# site: unknown
# expect: 6 gpus-without-rank
