#!/bin/bash
#$ -cwd
#$ -l h_rt=01:00:00
TRIM=$(qsub trim.sh)
qsub -hold_jid "$TRIM" count.sh
mpiexec -n 32 -machinefile "$PE_HOSTFILE" ./app
# site: unknown
# expect: 4 command-refused
# expect: 6 command-refused
