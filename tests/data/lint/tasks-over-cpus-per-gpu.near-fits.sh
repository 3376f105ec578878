#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=70
srun ./app
# site: unknown
