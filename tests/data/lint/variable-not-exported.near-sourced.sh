#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
source ./settings.sh
DATA=/scratch/set
srun -c8 bash -c './app $DATA'
# site: unknown
