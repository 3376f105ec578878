#!/bin/bash
#SBATCH --ntasks=8 --time=10
srun -N 2 -n 8 ./app
# site: unknown
