#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
srun --ntasks-per-node=1 python train.py
# site: unknown
# expect: 6 gpus-idle
