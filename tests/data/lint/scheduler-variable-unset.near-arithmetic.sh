#!/bin/bash
#SBATCH --nodes=1
##SBATCH --array=1-100
#SBATCH --time=01:00:00
task=$((SLURM_ARRAY_TASK_ID + ${SLURM_ARRAY_TASK_ID:-1}))
srun ./app --seed $task
# site: unknown
