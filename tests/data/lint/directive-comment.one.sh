#!/bin/bash
#PBS -l select=2
#PBS -l walltime=1:00:00   # one hour
mpiexec ./app
# site: unknown
# expect: 3 directive-comment
