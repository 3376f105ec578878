#!/bin/bash
#$ -pe mpi 8
# $ -cwd
mpirun -np $NSLOTS ./app
# site: unknown
# expect: 3 directive-not-read
