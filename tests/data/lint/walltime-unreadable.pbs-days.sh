#!/bin/bash
#PBS -l select=1:ncpus=4
#PBS -l walltime=2:00:00:00
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 3 walltime-unreadable
