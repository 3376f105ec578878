#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun --ntasks-per-node=1 torchrun --standalone --nproc_per_node=8 train.py
# site: unknown
