#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
setenv OMP_NUM_THREADS 4
set DATA=/scratch/data
$OUT=results
export RUN = first
export DEVICES=0, 1
if ["$RUN" = first ]; then echo first; fi
srun ./app
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
# expect: 6 command-refused
# expect: 6 variable-undefined
# expect: 7 command-refused
# expect: 8 command-refused
# expect: 9 command-refused
