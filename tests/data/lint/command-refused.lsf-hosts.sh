#!/bin/bash
#BSUB -W 1:00
#BSUB -nnodes 4
mpirun -np 4 -hostfile $LSB_HOSTS ./app
A=$(bsub < a.lsf)
bsub -w "done($A)" < b.lsf
# site: unknown
# expect: 4 command-refused
# expect: 5 command-refused
