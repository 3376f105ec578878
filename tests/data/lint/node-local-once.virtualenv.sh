#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
virtualenv --no-download $SLURM_TMPDIR/env
source $SLURM_TMPDIR/env/bin/activate
srun python train.py
# site: unknown
# expect: 4 node-local-once
