#!/bin/bash
#$ -pe mpi 8
# $ -rwxr-x--- how the file must be
# $ ls -l
mpirun -np $NSLOTS ./app
# site: unknown
