#!/bin/bash
#SBATCH --output=$HOME/%j.out
srun ./app
# site: unknown
# expect: 2 directive-variable
