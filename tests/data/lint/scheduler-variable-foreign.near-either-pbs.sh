#!/bin/bash
#PBS -l nodes=2:ppn=4
cd $PBS_O_WORKDIR
mpirun -np $PBS_NP ./app
# site: unknown
