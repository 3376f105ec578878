#!/bin/bash
#SBATCH --share
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 directive-unknown
