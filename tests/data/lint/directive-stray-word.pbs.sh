#!/bin/bash
#PBS -l select=2 debug
#PBS -l walltime=1:00:00
mpiexec ./app
# site: unknown
# expect: 2 directive-stray-word
