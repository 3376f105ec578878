#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=48
srun ./app
# site: unknown
# expect: 3 unit-missing
