#!/bin/bash
#PBS -l select=3:mpiprocs=1:ngpus=0
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
mpirun ./app
# site: unknown
