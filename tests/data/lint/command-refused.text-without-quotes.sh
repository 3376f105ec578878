#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
/bin/bash -c sleep 10
srun --ntasks=1 bash -c ./prepare.sh first
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
