#!/bin/bash
#SBATCH --output= out.txt
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-stray-word
