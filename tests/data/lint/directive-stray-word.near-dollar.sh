#!/bin/bash
#PBS -l select=1 -l walltime=1:00:00
#$HOME/bin/x -y
#${CLEANUP_CMD}
#$PBS_ARRAYID
mpiexec app
# site: unknown
