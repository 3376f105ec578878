#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --time=01:00:00
srun --gpus=1 python train.py
# site: unknown
