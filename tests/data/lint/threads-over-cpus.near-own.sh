#!/bin/bash
# site: unknown
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=4
#SBATCH --time=10
export OMP_NUM_THREADS=8
srun --ntasks=1 --cpus-per-task=8 ./app
