#!/bin/bash
#PBS -l nodes=2:ppn=4:gpus=2
cd $PBS_O_WORKDIR
./app --index $PBS_ARRAY_INDEX
# site: unknown
# expect: 4 scheduler-variable-foreign
