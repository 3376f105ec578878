#!/bin/bash
#PBS -l select=1,\
#PBS walltime=1:00:00
mpiexec ./app
# site: unknown
