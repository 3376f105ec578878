#!/bin/bash
#PBS -l select=2:ncpus=4
echo "$PBS_NP ranks"
cd $PBS_O_WORKDIR
mpiexec -n $PBS_NP ./app $PBS_ARRAYID
if [ "$PBS_NUM_NODES" -gt 1 ]; then echo many; fi
# site: unknown
# expect: 5 scheduler-variable-foreign
# expect: 5 status-lost
# expect: 6 scheduler-variable-foreign
