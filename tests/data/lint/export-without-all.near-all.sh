#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH --export=NONE
srun --export=ALL,OMP_NUM_THREADS=4 app
srun --export=all app
srun --export=PATH,LD_LIBRARY_PATH,OMP_NUM_THREADS=4 app
srun --export="$VARS,A=1" app
# site: unknown
# expect: 7 variable-undefined
