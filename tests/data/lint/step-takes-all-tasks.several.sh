#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun --nodes=1 ./prepare.sh
# site: unknown
# expect: 5 step-takes-all-tasks
