#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun torchrun --nproc_per_node=4 train.py
# site: unknown
# expect: 5 torchrun-one-node
