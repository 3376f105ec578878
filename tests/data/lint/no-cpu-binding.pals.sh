#!/bin/bash
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=0:30:00
#PBS -l filesystems=home
#PBS -q debug
#PBS -A datascience
cd $PBS_O_WORKDIR
EACH=4
mpiexec -n $((2 * EACH)) --ppn ${EACH} python train.py
# site: polaris
# expect: 10 no-cpu-binding
