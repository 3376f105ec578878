#!/bin/bash
#PBS -l select=1
#PBS -l walltime=1:00:00
mpiexec -n $SLURM_NTASKS ./app
# site: unknown
# expect: 4 scheduler-variable-foreign
