#!/bin/bash
#PBS -l select=1
#PBS -l walltime=1:00:00
mpiexec -n 4 ./a &
echo started
# site: unknown
# expect: 4 steps-without-wait
