#!/bin/bash
#SBATCH --nodes=1 --time=10
ARGS= '--smpiargs=-gpu'
srun ./app
# site: unknown
# expect: 3 assignment-space
