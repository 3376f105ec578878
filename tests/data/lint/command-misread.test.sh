#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
N=1
if [ $N=1 ]; then srun ./app; fi
if [ "$N" > 1 ]; then srun ./app; fi
# site: unknown
# expect: 5 command-misread
# expect: 6 command-misread
