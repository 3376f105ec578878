#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --export=NONE
module load slurm_setup
srun --export=WRKDIR,LD_LIBRARY_PATH /opt/app/bin/app
srun app
# site: unknown
