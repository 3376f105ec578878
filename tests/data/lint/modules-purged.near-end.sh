#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load gcc/12.2
srun ./app
module purge
echo done
seff "$SLURM_JOB_ID"
# site: unknown
# expect: 5 status-lost
