#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
module load mpich/4.1
export OMP_NUM_THREADS=4
mpirun --map-by core ./app
mpirun -np 2 ./app
# site: unknown
