#!/bin/bash
#SBATCH --output=
#SBATCH --job-name=
#SBATCH --input=
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 option-value-refused
