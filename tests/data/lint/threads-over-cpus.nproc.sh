#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --cpus-per-task=8
#SBATCH --time=01:00:00
export OMP_NUM_THREADS=$(nproc)
mpirun ./app
# site: unknown
# expect: 4 threads-over-cpus
