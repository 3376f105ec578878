#!/bin/bash
#PBS -N run -q gpu
#PBS -joe
#PBS -l select=1,walltime=01:00:00
#PBS -v A=1
cd "$PBS_O_WORKDIR" || exit
./app
# site: unknown
