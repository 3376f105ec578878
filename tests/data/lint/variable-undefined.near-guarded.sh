#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py ${dataset:-mnist} ${OUT:?} $1 $SLURM_JOB_ID
# site: unknown
