#!/bin/bash
#SBATCH --cpus=4
#SBATCH --mem-per-task=3G
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-unknown
# expect: 3 directive-unknown
