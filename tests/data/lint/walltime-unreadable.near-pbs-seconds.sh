#!/bin/bash
#PBS -l walltime=3600
mpiexec -n 4 ./app
# site: unknown
