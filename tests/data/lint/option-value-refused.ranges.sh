#!/bin/bash
#SBATCH --nodes=4-2
#SBATCH --array=1,10-3
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
