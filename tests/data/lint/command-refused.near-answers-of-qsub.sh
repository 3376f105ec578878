#!/bin/bash
#$ -cwd
#$ -l h_rt=01:00:00
TRIM=$(qsub -terse trim.sh)
qsub -hold_jid "$TRIM" count.sh
qsub -hold_jid trim count.sh
awk '{print $1":"$2}' "$PE_HOSTFILE" > machines
mpiexec -n 32 -machinefile machines ./app
# site: unknown
