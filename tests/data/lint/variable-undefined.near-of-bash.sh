#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [[ $PWD =~ ^/home/([a-z]*)/ ]]; then echo "${BASH_REMATCH[1]} ${BASH_LINENO[0]} $EPOCHREALTIME"; fi
srun ./app
# site: unknown
