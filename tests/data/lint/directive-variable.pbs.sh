#!/bin/bash
#PBS -o $HOME/out.txt
#PBS -l walltime=1:00:00
mpiexec ./app
# site: unknown
# expect: 2 directive-variable
