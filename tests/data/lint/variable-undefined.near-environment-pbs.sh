#!/bin/bash
#PBS -V
#PBS -l select=1:ncpus=4,walltime=01:00:00
cd "$PBS_O_WORKDIR"
./app "$DATASET"
# site: unknown
