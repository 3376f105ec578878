#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
ml singularity/3.8
mpiexec ./app
# site: polaris
# expect: 7 container-module-renamed
