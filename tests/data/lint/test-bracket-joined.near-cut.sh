#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ "$1" ] && [ "$2" ]; then exit 1; fi
if [[ $1 && $2 ]]; then exit 1; fi
[ -e a ] || exit 1
srun ./app
# site: unknown
