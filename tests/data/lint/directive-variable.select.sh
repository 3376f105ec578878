#!/bin/bash
#PBS -l select=1:ncpus=4
#PBS -l walltime=1:00:00
#PBS -e $HOME/err.txt
mpiexec ./app
# site: unknown
# expect: 4 directive-variable
