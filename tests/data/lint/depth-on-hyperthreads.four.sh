#!/bin/bash
#PBS -A Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
mpiexec -n 4 --ppn 4 --depth=16 --cpu-bind depth ./app
# site: polaris
# expect: 7 depth-on-hyperthreads
