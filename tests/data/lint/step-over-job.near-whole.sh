#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:a100:2
#SBATCH --exclusive
#SBATCH --time=01:00:00
srun --gres=gpu:4 ./app
# site: unknown
