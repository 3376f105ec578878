#!/bin/bash
#BSUB -ar -ul -rn -x
#BSUB -n 8,16
mpirun ./app
# site: unknown
