#!/bin/bash
#SBATCH --exclusive --gres=gpu:4 --time=10
srun ./app
# site: unknown
