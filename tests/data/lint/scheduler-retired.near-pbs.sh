#!/bin/bash
#PBS -l select=1
#PBS -l walltime=1:00:00
# once with COBALT
mpiexec ./app
# site: unknown
