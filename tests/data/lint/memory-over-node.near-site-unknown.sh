#!/bin/bash
#SBATCH --gpus-per-node=a100:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=5T
#SBATCH --time=1:00:00
srun ./app
# site: unknown
