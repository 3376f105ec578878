#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
unset SLURM_NTASKS
srun -N1 ./prepare.sh
# site: unknown
