#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app --epochs 3 \

srun ./other
# site: unknown
# expect: 4 continuation-dangling
