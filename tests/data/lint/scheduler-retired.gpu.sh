#!/bin/bash
#COBALT -n 1 -q full-node
#COBALT -t 30 -A Vega
mpirun -np 8 ./app
# site: unknown
# expect: 2 scheduler-retired
