#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
mpirun -np $SLURM_NTASKS ./app
# site: unknown
# expect: 4 scheduler-variable-unset
