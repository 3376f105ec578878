#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
set -a
NP=2
srun -c8 bash -c 'torchrun --standalone --nproc_per_node=$NP train.py'
# site: unknown
