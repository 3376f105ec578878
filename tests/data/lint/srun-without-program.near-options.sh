#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
srun --mpi=list
srun --version
srun $OPTIONS ./app
# site: unknown
# expect: 7 variable-undefined
