#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
mpirun -np 16 ./app
# site: unknown
# expect: 4 ranks-differ-from-tasks
