#!/bin/bash
#SBATCH --nodes=1 --time=10
[ "$1" = x ] && OUT=
IFS= read -r line
srun ./app
# site: unknown
