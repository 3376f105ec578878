#!/bin/bash
#SBATCH --nodes=1 --time=10
LOG=
. ./settings.sh
srun ./app > $LOG
# site: unknown
