#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a
rc=$?
echo "exit code $rc"
exit $rc
# site: unknown
