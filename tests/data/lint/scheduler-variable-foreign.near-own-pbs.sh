#!/bin/bash
#PBS -J 1-4
#PBS -l select=1:ncpus=2
PBS_NP=4
cd $PBS_O_WORKDIR
mpirun -np $PBS_NP ./app $PBS_ARRAY_INDEX
# site: unknown
