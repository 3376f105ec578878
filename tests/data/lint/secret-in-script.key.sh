#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export WANDB_API_KEY=0123456789abcdef0123
srun ./app
# site: unknown
# expect: 4 secret-in-script
