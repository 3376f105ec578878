#!/bin/bash
#PBS -A MyProject
#PBS -q prod
#PBS -l select=10:system=polaris
#PBS -l walltime=05:00:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
mpiexec -n 40 ./app
# site: polaris
# expect: 5 walltime-over-limit
