#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
run="mpiexec -n 8 ./app"
eval $run
# site: unknown
# expect: 6 ranks-differ-from-tasks
