#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a
if [ -f out ]; then
    mv out old
else
    exit 1
fi
# site: unknown
