#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=1-20
FILES=(data/*.csv)
NAMES=($(cat names))
EACH=(a b)
EACH+=(c)
./app "${FILES[$SLURM_ARRAY_TASK_ID]}" "${NAMES[$SLURM_ARRAY_TASK_ID]}" "${EACH[$SLURM_ARRAY_TASK_ID]}"
# site: unknown
