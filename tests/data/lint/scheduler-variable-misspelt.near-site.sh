#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
SLURM_NTASK=3
echo $SLURM_NTASK $SLURM_MYSITE_THING $SLURM_JOB_NODELIST
srun ./app
# site: unknown
