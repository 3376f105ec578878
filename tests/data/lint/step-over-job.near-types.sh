#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:a100:2,gpu:v100:2
#SBATCH --time=01:00:00
srun --gres=gpu:4 ./app
# site: unknown
