#!/bin/bash
#PBS -l select=1:ncpus=4:mpiprocs=4
#PBS -l walltime=1:00:00
mpirun -n 4 lmp < "$PBS_O_WORKDIR"/in.melt
# site: unknown
