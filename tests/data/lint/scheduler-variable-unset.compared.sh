#!/bin/bash
##SBATCH --array=1-4
#SBATCH --ntasks=1
if [ $SLURM_ARRAY_TASK_ID -eq 1 ]; then srun ./app; fi
# site: unknown
# expect: 4 scheduler-variable-unset
