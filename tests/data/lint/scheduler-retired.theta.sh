#!/bin/bash
#COBALT -n 8 -t 60 -A Vega
aprun -n 8 -N 1 ./app
# site: unknown
# expect: 2 scheduler-retired
