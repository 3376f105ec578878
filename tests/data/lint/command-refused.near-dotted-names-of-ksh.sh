#!/bin/ksh
#SBATCH --nodes=1 --time=10
my.path=/scratch/me
srun ./app
# site: unknown
