#!/bin/bash
#PBS -l nodes=2:ppn=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
mpirun -np 16 ./app
# site: unknown
# expect: 5 ranks-differ-from-tasks
