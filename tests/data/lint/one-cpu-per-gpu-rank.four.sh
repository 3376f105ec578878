#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
srun python train.py
# site: unknown
# expect: 3 one-cpu-per-gpu-rank
