#!/bin/bash
#PBS -l select=2:ncpus=8:\
mpiprocs=4
#PBS -l walltime=01:00:00
cd "$PBS_O_WORKDIR"
mpiexec -n 8 ./app
# site: unknown
