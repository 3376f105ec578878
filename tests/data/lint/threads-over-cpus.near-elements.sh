#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
export OMP_NUM_THREADS=4
mpirun --map-by slot:PE=4 --bind-to core ./app
mpirun --map-by core --bind-to none ./app
mpirun -bind-to core:4 ./app
mpirun ./app
# site: unknown
