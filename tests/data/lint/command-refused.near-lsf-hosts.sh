#!/bin/bash
#BSUB -W 1:00
#BSUB -nnodes 4
mpirun -np 4 -hostfile $LSB_DJOB_HOSTFILE ./app
A=$(bsub < a.lsf | grep -o "[0-9]*" | head -n1)
bsub -w "done($A)" < b.lsf
bsub -w "done(first)" < c.lsf
# site: unknown
