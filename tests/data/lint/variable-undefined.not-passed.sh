#!/bin/bash
#PBS -l select=1,walltime=01:00:00
#PBS -v CASE=/data/MESH,NUM_PTS
cd "$PBS_O_WORKDIR"
mpiexec ./app "$CASE" "$NUM_POINTS" "$MESH"
# site: unknown
# expect: 5 variable-undefined
