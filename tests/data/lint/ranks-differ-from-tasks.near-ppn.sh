#!/bin/bash
#PBS -l nodes=2:ppn=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
mpirun -np 8 ./app
# site: unknown
