#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun ./app --rank $SLURM_PROCID
# site: unknown
# expect: 4 rank-variable-too-early
