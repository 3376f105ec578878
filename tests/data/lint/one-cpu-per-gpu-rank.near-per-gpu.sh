#!/bin/bash
#SBATCH --gpus=4
#SBATCH --cpus-per-gpu=16
#SBATCH --time=01:00:00
srun python train.py
# site: unknown
