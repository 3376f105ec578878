#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
srun --gpus=8 ./app
srun --gres=gpu:2 ./app
# site: unknown
