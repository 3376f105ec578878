#!/bin/bash
#$ -pe mpi 8
#$ -l h_rt=01:00:00
mpirun -np 8 ./app
echo done
# site: unknown
# expect: 4 status-lost
