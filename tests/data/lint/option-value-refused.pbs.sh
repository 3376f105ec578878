#!/bin/bash
#PBS -l select=2:ncpus=4:walltime=01:00:00
#PBS -l place=scater
#PBS -J 1,3,5
#PBS -W depend=afterok=12
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 2 option-value-refused
# expect: 3 option-value-refused
# expect: 4 option-value-refused
# expect: 5 option-value-refused
