#!/bin/bash
#BSUB -n8 -W1:00
#BSUB -nnodes 2
#BSUB -oout.%J
#BSUB -R"span[ptile=4]"
mpirun ./app
# site: unknown
