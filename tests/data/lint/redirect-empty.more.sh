#!/bin/bash
#SBATCH --nodes=1 --time=10
IN=""
LOG=''
srun ./app < $IN
srun ./app 2>> "$LOG" && srun ./app &> $IN$LOG
# site: unknown
# expect: 5 redirect-empty
# expect: 6 redirect-empty
