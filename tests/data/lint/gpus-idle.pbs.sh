#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
mpiexec -n 2 --ppn 1 apptainer exec --nv torch.sif python train.py
# site: polaris
# expect: 8 gpus-idle
