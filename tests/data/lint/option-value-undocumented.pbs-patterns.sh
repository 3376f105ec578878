#!/bin/bash
#PBS -o a.%j.out
#PBS -l select=1,walltime=01:00:00
cd "$PBS_O_WORKDIR"
./app
# site: unknown
# expect: 2 option-value-undocumented
