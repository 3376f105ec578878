#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:2
#SBATCH --time=01:00:00
srun --gpus=4 ./app
srun --jobid=123 --gres=gpu:4 ./app
srun --gres=mps:50 ./app
# site: unknown
