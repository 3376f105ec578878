#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:a100:2
#SBATCH --time=01:00:00
srun --gres=gpu:2 ./app
srun --gpus=4 ./app
srun --gpus-per-node=a100:1 ./app
# site: unknown
