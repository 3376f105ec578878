#!/bin/bash
#PBS -A MyProject
#PBS -q workq
#PBS -l select=1:system=polaris
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
mpiexec -n 4 ./app
# site: polaris
# expect: 3 queue-unknown
