#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --cpus-per-task=2
#SBATCH --time=01:00:00
mpirun -np $SLURM_NTASKS ./app
srun -n 16 -c 1 ./app
# site: unknown
