#!/bin/bash
#SBATCH --gpus=8
#SBATCH --mem-per-gpu=120G
#SBATCH --time=1:00:00
#SBATCH --account=def-a
srun ./app
# site: narval
