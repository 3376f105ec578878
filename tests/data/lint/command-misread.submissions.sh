#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
bsub phase_$c.lsf
bsub -q long "phase.bsub"
sbatch --array=1-30 --wrap "Rscript a.R $SLURM_ARRAY_TASK_ID"
awk 'NR==$SLURM_ARRAY_TASK_ID' list
awk -F, "{print}" 'NR == ${SLURM_ARRAY_TASK_ID}' list
# site: unknown
# expect: 4 command-misread
# expect: 5 command-misread
# expect: 6 command-misread
# expect: 7 command-misread
# expect: 8 command-misread
# expect: 6 scheduler-variable-unset
