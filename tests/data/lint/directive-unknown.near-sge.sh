#!/bin/bash
#$ -notify -V -cwd
#$ -now n -pe mpi 8
mpirun -np $NSLOTS ./app
# site: unknown
