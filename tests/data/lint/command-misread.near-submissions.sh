#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
bsub < phase.lsf
bsub -q long -o phase.lsf ./app
bsub ./app phase.txt
sbatch --array=1-30 --wrap "Rscript a.R \$SLURM_ARRAY_TASK_ID"
sbatch --array=1-30 --wrap 'Rscript a.R $SLURM_ARRAY_TASK_ID'
sbatch --time=10 --wrap "Rscript a.R $SLURM_ARRAY_TASK_ID"
awk 'NR=='"$SLURM_ARRAY_TASK_ID" list
awk "NR==$SLURM_ARRAY_TASK_ID" list
awk -v n="$SLURM_ARRAY_TASK_ID" 'NR == n {print $1}' list
# site: unknown
# expect: 9 scheduler-variable-unset
