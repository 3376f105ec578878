#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
THREADS=16
export OMP_NUM_THREADS="${THREADS}"
srun ./app
# site: unknown
# expect: 6 threads-over-cpus
