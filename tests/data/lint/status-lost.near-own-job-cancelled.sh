#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py
scancel "$SLURM_JOB_ID"
# site: unknown
