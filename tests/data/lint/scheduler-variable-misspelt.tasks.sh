#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
mpirun -np $SLURM_NTASK ./app
# site: unknown
# expect: 4 scheduler-variable-misspelt
