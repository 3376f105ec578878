#!/bin/bash
#PBS -l select=1:ncpus=4:mpiprocs=4
#PBS -l walltime=1:00:00
mpiexec -n 4 ./app
# site: unknown
# expect: 4 submit-folder-not-entered
