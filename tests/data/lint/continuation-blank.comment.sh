#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app --distributed \ #other parameters
# site: unknown
# expect: 4 continuation-blank
