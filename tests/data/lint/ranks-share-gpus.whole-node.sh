#!/bin/bash
#PBS -l select=2:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
#PBS -A P
#PBS -q debug -l place=scatter
mpiexec -n 16 --ppn 8 python t.py
# site: polaris
# expect: 7 ranks-share-gpus
