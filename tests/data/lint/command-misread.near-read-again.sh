#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
application="~/project/run.sh"
CMD="$application $@"
eval $CMD
OTHER="~/project/other.sh --fast"
bash -c "$OTHER"
FOLDER='~/data'
FOLDER=$(eval echo "$FOLDER")
ls "$FOLDER"
# site: unknown
