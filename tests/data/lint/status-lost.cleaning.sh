#!/bin/bash
#PBS -l select=1
#PBS -l walltime=1:00:00
mpiexec -n 4 ./app
rm -f core
date
# site: unknown
# expect: 4 status-lost
