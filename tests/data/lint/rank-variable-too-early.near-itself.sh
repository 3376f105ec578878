#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
if [ -z "$SLURM_STEP_ID" ]; then exec srun "$0"; fi
python train.py --rank $SLURM_PROCID
# site: unknown
