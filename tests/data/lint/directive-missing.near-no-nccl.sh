#!/bin/bash
#SBATCH -A abc123
#SBATCH -p batch
#SBATCH --nodes=64
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --gpus-per-task=1
#SBATCH --gpu-bind=closest
#SBATCH --time=01:00:00
srun ./flow input.yaml
# site: frontier
