#!/bin/bash
#SBATCH --ntasks-per-node=#1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
