#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
cp -r data /scratch/$USER_data
srun ./app
# site: unknown
# expect: 4 variable-undefined
