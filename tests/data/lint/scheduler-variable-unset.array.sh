#!/bin/bash
#PBS -l select=1:ncpus=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
./app $PBS_ARRAY_INDEX
# site: unknown
# expect: 5 scheduler-variable-unset
