#!/bin/bash
#SBATCH --partition=gpu-highmem --gpus-per-node=8
#SBATCH --mem=400G
#SBATCH --time=1:00:00
#SBATCH --account=a-gpu
srun ./app
# site: setonix-gpu
