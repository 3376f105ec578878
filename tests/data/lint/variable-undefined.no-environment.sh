#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --export=NONE
/opt/app/bin/app "$DATASET"
# site: unknown
# expect: 5 variable-undefined
