#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --gres=gpu:a100:2,lscratch:10
#SBATCH --array=0-15:4,20%2
#SBATCH --cpus-per-task=8
#SBATCH --gpu-bind=verbose,closest
srun --gpus=v100:1 ./app
# site: unknown
