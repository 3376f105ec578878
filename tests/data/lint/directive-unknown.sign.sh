#!/bin/bash
#SBATCH --mem-4G --time=10
srun ./app
# site: unknown
# expect: 2 directive-unknown
