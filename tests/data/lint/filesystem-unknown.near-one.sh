#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=eagle
mpiexec ./app
# site: polaris
