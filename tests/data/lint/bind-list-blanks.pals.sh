#!/bin/bash
#PBS -A MyProject
#PBS -q debug
#PBS -l select=1:system=polaris
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter
mpiexec -n 4 -ppn 4 --cpu-bind list:24-31: 16-23:8-15:0-7 ./app
# site: polaris
# expect: 8 bind-list-blanks
