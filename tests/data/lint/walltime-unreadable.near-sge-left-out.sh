#!/bin/bash
#$ -cwd
#$ -l h_rt=:20:
#$ -pe mpi 4-8
mpirun ./app
# site: unknown
