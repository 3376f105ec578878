#!/bin/bash
#SBATCH -A project_465000001
#SBATCH -p standard
#SBATCH -n 1 -N 1
#SBATCH -t 1:00:00
#SBATCH --cpus-per-task=128
srun --cpus-per-task=128 ./app
# site: lumi-g
