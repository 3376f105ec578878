#!/bin/bash
#SBATCH --nodes=1 --time=10
LOG=
if [ -n "$LOG" ]; then
  srun ./app > $LOG
else
  srun ./app
fi
# site: unknown
