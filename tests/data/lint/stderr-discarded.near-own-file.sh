#!/bin/bash
#SBATCH -N 1 -n 1 --time=10
#SBATCH --error=/dev/null
exec > "log-$SLURM_JOB_ID.txt" 2>&1
srun ./app
# site: unknown
