#!/bin/bash
#PBS -l nodes=2:ppn=4
#PBS -l walltime=00:10:00
#PBS -l select=2
cd $PBS_O_WORKDIR
mpirun -n $PBS_NP ./app
# site: unknown
# expect: 2 options-contradict
