#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00 
srun ./app
# site: unknown
# expect: 2 directive-stray-word
# expect: 3 directive-stray-word
