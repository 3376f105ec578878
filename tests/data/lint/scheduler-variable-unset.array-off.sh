#!/bin/bash
#SBATCH --nodes=1
##SBATCH --array=1-100
#SBATCH --time=01:00:00
seed=$(($SLURM_ARRAY_TASK_ID - 1))
srun ./app --seed $seed
# site: unknown
# expect: 5 scheduler-variable-unset
