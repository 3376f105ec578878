#!/bin/bash
N=2
#PBS -l walltime=1:00:00
mpiexec -n $N ./app
# site: unknown
# expect: 3 directive-ignored
