#!/bin/bash
#PBS -l select=2:ncpus=16:mpiprocs=4:ompthreads=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
export OMP_NUM_THREADS=$NCPUS
mpirun ./app
# site: unknown
