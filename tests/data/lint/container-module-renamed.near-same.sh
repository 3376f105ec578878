#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
module load apptainer
mpiexec ./app
# site: polaris
