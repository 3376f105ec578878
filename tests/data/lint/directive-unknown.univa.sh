#!/bin/bash
#$ -cwd -pe mpi 8
#$ -umask 022
mpirun -np $NSLOTS ./app
# site: unknown
# expect: 3 directive-unknown
