#!/bin/bash
#PBS -A MyProject -q debug
#PBS -l select=1:system=polaris,walltime=00:30:00,filesystems=home,place=scatter
mpiexec -n 4 ./app
# site: polaris
