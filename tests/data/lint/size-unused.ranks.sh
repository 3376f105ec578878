#!/bin/bash
#PBS -l select=1
#PBS -l walltime=1:00:00
NRANKS_PER_NODE=8
mpiexec --ppn 4 ./app
# site: unknown
# expect: 4 size-unused
