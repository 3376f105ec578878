#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
unset NCCL_BLOCKING_WAIT
srun python train.py
# site: unknown
