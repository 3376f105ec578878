#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
wandb login "$(cat ~/.wandb_key)"
srun python train.py
# site: unknown
