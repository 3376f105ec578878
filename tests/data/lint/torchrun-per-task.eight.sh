#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun torchrun --standalone --nproc_per_node=8 train.py
# site: unknown
# expect: 5 torchrun-per-task
