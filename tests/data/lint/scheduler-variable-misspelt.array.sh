#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --array=1-4
srun ./app $SLURM_ARRAYID
# site: unknown
# expect: 5 scheduler-variable-misspelt
