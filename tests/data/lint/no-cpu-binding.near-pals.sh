#!/bin/bash
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=0:30:00
#PBS -l filesystems=home
#PBS -q debug
#PBS -A datascience
cd $PBS_O_WORKDIR
ARGS=(-n 8 --ppn 4)
ARGS+=(--cpu-bind list:24,25:16,17:8,9:0,1)
mpiexec "${ARGS[@]}" python train.py
# site: polaris
