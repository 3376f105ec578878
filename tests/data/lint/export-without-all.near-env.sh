#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --export=NONE
unset SLURM_EXPORT_ENV
module load app
srun app input
srun --export=NONE /bin/bash -l run.sh
# site: unknown
