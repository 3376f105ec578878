#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks-per-node=8
srun -n 1 mpirun -np 8 ./app
# site: unknown
