#!/bin/bash
#SBATCH --nodes=1 --time=10
OUT = results
srun ./app
# site: unknown
# expect: 3 assignment-space
