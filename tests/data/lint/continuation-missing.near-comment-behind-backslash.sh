#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app \ # the program
  --distributed
# site: unknown
# expect: 4 continuation-blank
