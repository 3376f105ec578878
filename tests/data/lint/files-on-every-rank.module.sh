#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun python -m pip install torch
srun ./app
# site: unknown
# expect: 5 files-on-every-rank
