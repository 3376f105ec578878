#!/bin/bash
#PBS -A MyProject
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
mpiexec -n 4 ./app
# site: polaris
