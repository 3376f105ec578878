#!/bin/bash
#PBS -l select=3:mpiprocs=32:ncpus=32+1:ncpus=4:ngpus=1
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
mpirun ./app
# site: unknown
