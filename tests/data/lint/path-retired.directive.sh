#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
#SBATCH --output=/gpfs/alpine/scratch/abc/out
srun ./app
# site: unknown
# expect: 4 path-retired
