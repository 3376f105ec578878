#!/bin/bash
#PBS -l select=1:ncpus=4+2:ngpus=1:mem=8gb
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
mpirun ./app
# site: unknown
# expect: 2 chunk-cpus-missing
