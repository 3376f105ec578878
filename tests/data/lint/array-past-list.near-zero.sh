#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=0-4%2
CITIES=(bergen oslo tromso bodo molde)
./app "${CITIES[$SLURM_ARRAY_TASK_ID]}"
# site: unknown
