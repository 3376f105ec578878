#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a
echo "exit code $?"
exit $?
# site: unknown
# expect: 5 command-misread
