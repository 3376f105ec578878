#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load gcc/12.2
if [ -n "$CLEAN" ]; then module purge; fi
srun ./app
# site: unknown
