#!/bin/bash
#SBATCH --nodes=1 --ntasks=8 --time=10
srun -N 2 -n 1 ./app
srun -N 1 -n 8 ./app
# site: unknown
