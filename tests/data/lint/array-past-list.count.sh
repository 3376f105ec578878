#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=1-5
CITIES=(bergen oslo tromso bodo molde)
./app "${CITIES[$SLURM_ARRAY_TASK_ID]}"
# site: unknown
# expect: 4 array-past-list
