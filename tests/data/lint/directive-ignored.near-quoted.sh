#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
TEMPLATE='
#SBATCH --nodes=2
'
srun ./app "$TEMPLATE"
# site: unknown
