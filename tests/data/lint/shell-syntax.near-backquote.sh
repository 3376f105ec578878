#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
id=`date # the day`
echo 'a ` sign' "and \` one"
srun ./app "$id"  # a ` sign
# site: unknown
