#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --cpus-per-task=$(nproc)
#SBATCH --partition=`whoami`
srun ./app
# site: unknown
# expect: 4 directive-variable
# expect: 5 directive-variable
