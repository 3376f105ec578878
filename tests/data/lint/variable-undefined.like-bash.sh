#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [[ $PWD =~ ^/home/([a-z]*)/ ]]; then echo "${BASH_MATCH[1]}"; fi
srun ./app
# site: unknown
# expect: 4 variable-undefined
