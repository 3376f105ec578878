#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export WANDB_API_KEY=$(cat ~/.key)
export HF_TOKEN=/home/me/token TOKEN=$TOKEN
srun ./app
# site: unknown
