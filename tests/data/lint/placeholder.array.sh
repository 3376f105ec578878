#!/bin/bash
#SBATCH --array=1-NUMBER
#SBATCH --ntasks=<>
#SBATCH --time=<>
srun ./app "$SLURM_ARRAY_TASK_ID"
# site: unknown
# expect: 2 placeholder
