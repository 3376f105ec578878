#!/bin/bash
#SBATCH --time=01:00:00
#SBTCCH --mem-per-gpu=60G
#sbatch --nodes=2
srun ./app
# site: unknown
# expect: 3 directive-unknown
# expect: 4 directive-unknown
