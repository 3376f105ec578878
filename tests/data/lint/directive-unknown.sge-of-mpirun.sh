#!/bin/bash
#$ -cwd -pe mpi 8
#$ -npernode 4
mpirun -np $NSLOTS ./app
# site: unknown
# expect: 3 directive-unknown
