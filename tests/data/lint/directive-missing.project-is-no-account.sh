#!/bin/bash
# site: polaris
# expect: - directive-missing
#PBS -P Vega
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
mpiexec -n 4 --ppn 4 --depth=8 --cpu-bind depth ./app
