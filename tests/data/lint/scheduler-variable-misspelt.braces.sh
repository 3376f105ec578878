#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
echo ${SLURM_JOB_NODLIST}
srun ./app
# site: unknown
# expect: 4 scheduler-variable-misspelt
