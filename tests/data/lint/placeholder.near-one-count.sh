#!/bin/bash
#SBATCH --nodes=dp
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
