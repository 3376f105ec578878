#!/bin/bash
#PBS -l nodes=1:ppn=1
#PBS -l walltime=01:00:00
#PBS -t 1-4
cd $PBS_O_WORKDIR
./app $PBS_ARRAY_INDEX
# site: unknown
# expect: 6 scheduler-variable-foreign
