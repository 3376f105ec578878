#!/bin/bash
  #PBS -q debug # or prod
#PBS -l walltime=1:00:00
mpiexec ./app
# site: unknown
# expect: 2 directive-comment
