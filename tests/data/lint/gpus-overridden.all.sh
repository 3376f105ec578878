#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
export ROCR_VISIBLE_DEVICES=1,0
srun ./app
# site: unknown
# expect: 5 gpus-overridden
