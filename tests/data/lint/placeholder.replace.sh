#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=REPLACE_WITH_WALLTIME
srun ./app
# site: unknown
# expect: 3 placeholder
