#!/bin/bash
#SBATCH --ntasks=4 -p gpu
#SBATCH -J a=b
#SBATCH --time=01:00:00
srun ./app
# site: unknown
