#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
srun pip install torch
srun ./app
# site: unknown
# expect: 4 files-on-every-rank
