#!/bin/bash
#PBS -t 1-10 -d /scratch/run -b 10
#PBS -l walltime=1:00:00
mpiexec ./app
# site: unknown
