#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
source setup.sh
wandb_key=a
export WANDB_KEY=$WANDB_KEY
./app
# site: unknown
