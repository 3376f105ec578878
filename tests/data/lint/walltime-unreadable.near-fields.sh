#!/bin/bash
#SBATCH -J name -N 1
#SBATCH --time=runtime
#SBATCH -n hpctasks
#SBATCH --mem=RAM
srun ./app
# site: unknown
# expect: 3 placeholder
