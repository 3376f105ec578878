#!/bin/bash
#PBS -l select=1,walltime=01:00:00
#PBS -r n
cd "$PBS_O_WORKDIR"
./app
# site: unknown
