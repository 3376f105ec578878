#!/bin/bash
#PBS -A MyProject
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=30:00:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
mpiexec -n 4 ./app
# site: polaris
# expect: 5 walltime-over-limit
