#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-gpu=124G
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
