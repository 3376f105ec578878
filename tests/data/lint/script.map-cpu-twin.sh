#!/bin/bash
#SBATCH -A project_465000000
#SBATCH -p standard-g
#SBATCH -N 1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH -t 1:00:00
set -euo pipefail
srun --cpu-bind=map_cpu:49,57,17,25,1,9,33,41 ./application
# site: lumi-g
