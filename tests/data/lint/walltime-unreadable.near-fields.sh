#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=nn:nn:nn
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 3 placeholder
