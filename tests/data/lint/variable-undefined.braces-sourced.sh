#!/bin/bash
#SBATCH --nodes=1 --time=10
. ./settings.sh
SAMPLE=a
mkdir out_$SAMPLE_$SLURM_JOB_ID
srun ./app $SAMPLE $OTHER
# site: unknown
# expect: 5 variable-undefined
