#!/bin/bash
#SBATCH --array=0-4 --time=10
CITY="bergen oslo molde"
./app ${CITY[$SLURM_ARRAY_TASK_ID]}
# site: unknown
# expect: 2 array-past-list
