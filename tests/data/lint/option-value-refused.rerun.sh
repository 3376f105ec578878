#!/bin/bash
#PBS -l select=1,walltime=01:00:00
#PBS -r no
cd "$PBS_O_WORKDIR"
./app
# site: unknown
# expect: 3 option-value-refused
