#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun bash -c 'python train.py --rank $SLURM_PROCID'
srun bash -c "python train.py --rank \$SLURM_PROCID"
# site: unknown
