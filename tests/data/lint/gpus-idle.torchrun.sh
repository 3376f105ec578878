#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
srun torchrun --standalone --nproc_per_node=4 train.py
# site: unknown
# expect: 7 gpus-idle
