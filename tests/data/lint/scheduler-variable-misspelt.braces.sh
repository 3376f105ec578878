#!/bin/bash
#SBATCH --nodes=1 --time=10
srun ./app --out run_$SLURM_JOB_ID_$SLURM_JOB_NAME
# site: unknown
# expect: 3 scheduler-variable-misspelt
