#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export OMP_PROC_BIND=spreaded
srun ./app
# site: unknown
# expect: 4 variable-value-unknown
