#!/bin/bash
#PBS -l walltime=01:00:00
cd $PBS_0_WORKDIR
./app $PBS_JOB_ID
# site: unknown
# expect: 3 scheduler-variable-misspelt
# expect: 4 scheduler-variable-misspelt
