#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:2
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 3 gpus-conflict
