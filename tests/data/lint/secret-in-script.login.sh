#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
wandb login 0123456789abcdef0123456789abcdef01234567
srun python train.py
# site: unknown
# expect: 4 secret-in-script
