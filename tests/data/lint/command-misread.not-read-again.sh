#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
application="~/project/run.sh"
CMD="python train.py"
eval $CMD
bash -c 'echo "$application"'
$application
# site: unknown
# expect: 4 command-misread
