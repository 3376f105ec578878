#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --mem=64
srun ./app
# site: unknown
# expect: 4 unit-missing
