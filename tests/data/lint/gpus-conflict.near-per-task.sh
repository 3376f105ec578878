#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --gpus=4
#SBATCH --cpus-per-task=4
srun ./app
# site: unknown
