#!/bin/bash
# site: unknown
# expect: 7 continuation-dangling
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app \
  --epochs 3 \