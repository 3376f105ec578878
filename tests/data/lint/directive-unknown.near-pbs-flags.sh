#!/bin/bash
#PBS -l nodes=2:ppn=4
#PBS -Vn
#PBS -q main -h
cd $PBS_O_WORKDIR
mpiexec ./app
# site: unknown
