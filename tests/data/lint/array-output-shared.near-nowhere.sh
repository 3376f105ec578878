#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --array=1-10
#SBATCH --output=none
srun ./a.out
# site: unknown
