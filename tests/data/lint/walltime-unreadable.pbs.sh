#!/bin/bash
#PBS -l walltime=1-00:00:00
mpiexec -n 4 ./app
# site: unknown
# expect: 2 walltime-unreadable
