#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --mem=64G
#SBATCH --mem-per-cpu=4G
srun ./app
# site: unknown
# expect: 5 options-contradict
