#!/bin/bash
#BSUB -n 8
#BSUB -npernode 4
mpirun ./app
# site: unknown
# expect: 3 option-value-refused
