#!/bin/bash
#SBATCH --chdir ##### the path of the project
#SBATCH --nodes=1
#SBATCH --nice
#SBATCH --time=01:00:00
#SBATCH -A
srun ./app
# site: unknown
# expect: 2 option-value-refused
# expect: 6 option-value-refused
