#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun bash -c 'python train.py --id \$SLURM_JOB_ID'
# site: unknown
# expect: 4 escaped-dollar
