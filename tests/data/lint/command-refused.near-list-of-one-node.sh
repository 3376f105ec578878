#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4
N=$((SLURM_TASKS_PER_NODE * 2))
torchrun --nproc_per_node=$SLURM_TASKS_PER_NODE train.py $N
# site: unknown
