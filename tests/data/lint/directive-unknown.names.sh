#!/bin/bash
#SBATCH --nodez=2
#SBATCH --cpus-per-tsk 4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-unknown
# expect: 3 directive-stray-word
# expect: 3 directive-unknown
