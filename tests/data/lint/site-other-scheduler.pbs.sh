#!/bin/bash
#PBS -l select=2
#PBS -l walltime=1:00:00
mpiexec ./app
# site: lumi-g
# expect: 2 site-other-scheduler
