#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle:theta-fs0
mpiexec ./app
# site: polaris
# expect: 6 filesystem-unknown
