#!/bin/bash
#PBS -l select=1,walltime=01:00:00
#PBS -v EXEC,NUM_PTS,"MODE='a,b'"
cd "$PBS_O_WORKDIR"
mpiexec "$EXEC" "$NUM_PTS" "$MODE"
# site: unknown
