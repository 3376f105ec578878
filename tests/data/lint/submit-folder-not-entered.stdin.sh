#!/bin/bash
#PBS -l select=1:ncpus=4:mpiprocs=4
#PBS -l walltime=1:00:00
mpirun -n 4 lmp < in.melt
# site: unknown
# expect: 4 submit-folder-not-entered
