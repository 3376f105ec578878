#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
#SBATCH --mem-per-cpu=4G
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --ntasks-per-node=4
srun ./app
# site: unknown
