#!/bin/bash
#PBS -N=run -q=gpu
#PBS -j=oe
#PBS -l=select=1
#PBS -A=alpha
#PBS -l walltime=01:00:00
cd "$PBS_O_WORKDIR" || exit
./app
# site: unknown
# expect: 2 directive-equals
# expect: 3 directive-equals
# expect: 4 directive-equals
# expect: 5 directive-equals
