#!/bin/bash
#PBS -l nodes=2:ppn=8:bigmem
#PBS -l walltime=1:00:00   # one hour
mpiexec ./app
# site: unknown
