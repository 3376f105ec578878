#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8 --time=10
srun ./a
if [ -f out ]; then
    mv out old
fi
sync
# site: unknown
# expect: 3 status-lost
