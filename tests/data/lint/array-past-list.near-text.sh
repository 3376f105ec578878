#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=1-2
A=(x y)
./app "${A[0]}" "${B[$SLURM_ARRAY_TASK_ID]}" "$SLURM_ARRAY_TASK_ID"
# site: unknown
