#!/bin/bash
##SBATCH --array=1-4
#SBATCH --ntasks=1
if [ -n "$SLURM_ARRAY_TASK_ID" ]; then srun ./app $SLURM_ARRAY_TASK_ID; fi
# site: unknown
