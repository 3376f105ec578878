#!/bin/bash
#PBS -l nodes=2:ppn=8
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
export OMP_NUM_THREADS=$PBS_NUM_PPN
mpirun -npernode 1 ./app
# site: unknown
