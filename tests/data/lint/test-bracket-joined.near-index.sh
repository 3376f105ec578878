#!/bin/bash
#SBATCH --nodes=1 --time=10
[ ${LIST[0]} = ${LIST[1]} ] && exit 1
srun ./app
# site: unknown
