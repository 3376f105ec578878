#!/bin/bash
#SBATCH --account=project_2000123
#SBATCH --partition=gpumedium
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=72
#SBATCH --gres=gpu:gh200:1
#SBATCH --time=01:00:00
module load python-pytorch/2.10
srun python3 train.py
# A form of CSC's page on PyTorch.
