#!/bin/bash
#SBATCH --time=01:00:00
if [[ -d out && -f in]]; then
    srun ./app
fi
# site: unknown
# expect: 3 shell-syntax
