#!/bin/bash
#$ -cwd -pe mpi 8
#$ -mem 4G
mpirun -np $NSLOTS ./app
# site: unknown
# expect: 3 directive-unknown
