#!/bin/bash
#SBATCH --nodes=1-4
#SBATCH --gpus=2
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
