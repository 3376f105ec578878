#!/bin/bash
#PBS -N
#PBS -V
#PBS -l select=1:ncpus=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 2 option-value-refused
