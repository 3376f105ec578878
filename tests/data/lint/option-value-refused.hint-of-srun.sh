#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --hint=nomultithreads ./app
# site: unknown
# expect: 4 option-value-refused
