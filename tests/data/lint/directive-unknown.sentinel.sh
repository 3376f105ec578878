#!/bin/bash
#SBTCCH --mem-per-gpu=60G
#sbatch --nodes=2
srun ./app
# site: unknown
# expect: 2 directive-unknown
# expect: 3 directive-unknown
