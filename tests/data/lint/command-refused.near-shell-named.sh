#!/bin/bash
#$ -S /bin/csh
#$ -cwd
setenv OMP_NUM_THREADS 4
source setup.csh
./app
# site: unknown
