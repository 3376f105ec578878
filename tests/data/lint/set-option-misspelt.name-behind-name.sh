#!/bin/bash
#SBATCH --time=01:00:00
set -o nounset errexit
srun ./app
# site: unknown
# expect: 3 set-option-misspelt
