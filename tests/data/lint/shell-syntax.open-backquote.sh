#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
id=`date '+%Y%m%d'
srun ./app "$id"
# site: unknown
# expect: 4 shell-syntax
