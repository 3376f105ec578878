#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=1-2
CITIES=(none bergen oslo)
./app "${CITIES[$SLURM_ARRAY_TASK_ID]}"
# site: unknown
