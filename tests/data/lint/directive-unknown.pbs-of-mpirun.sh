#!/bin/bash
#PBS -l select=2:mpiprocs=4
#PBS -npernode 4
#PBS -np 8
cd $PBS_O_WORKDIR
mpiexec ./app
# site: unknown
# expect: 2 chunk-cpus-missing
# expect: 3 directive-unknown
# expect: 4 directive-unknown
