#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ -e first.gro ]:
    srun ./app first.gro
elif [ -e second.gro ]; then
    srun ./app second.gro
fi
# site: unknown
# expect: 6 shell-syntax
