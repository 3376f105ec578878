#!/bin/bash
#SBATCH --nodes=1 --time=10
set_log() {
  LOG=$1
}
LOG=
set_log app.log
srun ./app > $LOG
# site: unknown
