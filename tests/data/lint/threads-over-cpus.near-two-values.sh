#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
if [ -n "$TEST" ]; then THREADS=4; else THREADS=16; fi
export OMP_NUM_THREADS=$THREADS
srun ./app
# site: unknown
