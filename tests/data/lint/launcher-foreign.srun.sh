#!/bin/bash
#PBS -l select=2
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
srun -n 8 ./app
# site: unknown
# expect: 5 launcher-foreign
