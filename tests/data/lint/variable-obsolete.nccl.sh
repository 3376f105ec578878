#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export NCCL_TREE_THRESHOLD=0
srun ./app
# site: unknown
# expect: 4 variable-obsolete
