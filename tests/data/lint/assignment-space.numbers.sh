#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
SEED= 42
DEBUG= true
DAY= $(date +%d)
srun ./app
# site: unknown
# expect: 4 assignment-space
# expect: 5 assignment-space
# expect: 6 assignment-space
