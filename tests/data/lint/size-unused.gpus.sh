#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
NGPUS=8
srun ./app
# site: unknown
# expect: 4 size-unused
