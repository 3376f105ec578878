#!/bin/bash
#SBATCH --time=01:00:00
if [[ $1 == [0-9] && $1 != a[[:digit:]] ]]; then
    srun ./app
fi
[[ -d out
   && -f in ]] && srun ./app
# site: unknown
