#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun singularity exec $CONTAINER python train.py
# site: unknown
# expect: 4 variable-undefined
