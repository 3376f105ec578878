#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
module load impi
export OMP_NUM_THREADS=4
export I_MPI_PIN_DOMAIN=core
mpirun ./app
# site: unknown
# expect: 9 threads-over-cpus
