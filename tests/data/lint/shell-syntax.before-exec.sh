#!/bin/bash
#SBATCH --ntasks=1
exec > log
if true; then exec ./other; fi
srun ./app (1, 2)
# site: unknown
# expect: 5 shell-syntax
