#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
echo "begins ${expName}"
srun ./app
# site: unknown
# expect: 4 variable-undefined
