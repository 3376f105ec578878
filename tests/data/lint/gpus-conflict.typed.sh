#!/bin/bash
#SBATCH -N 2
#SBATCH -G a100:4
#SBATCH --gres=gpu:a100:4
srun ./app
# site: unknown
# expect: 3 gpus-conflict
