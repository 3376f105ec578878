#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun --ntasks-per-nodes=4 ./app
# site: unknown
# expect: 4 launcher-option-unknown
