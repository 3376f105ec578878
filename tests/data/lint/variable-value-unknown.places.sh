#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
export OMP_PLACES=core
export KMP_AFFINITY=granularity=fine,compat
srun ./a
# site: unknown
# expect: 3 variable-value-unknown
# expect: 4 variable-value-unknown
