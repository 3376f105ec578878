#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun -n 16 ./app
# site: unknown
# expect: 5 ranks-differ-from-tasks
