#!/bin/bash
#PBS -A MyProject
#PBS -q debug
#PBS -l select=1:system=polaris:ngpus=8
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
mpiexec -n 8 ./app
# site: polaris
# expect: 4 gpus-over-node
