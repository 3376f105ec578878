#!/bin/bash
#PBS -l select=1:ncpus=4:
#PBS -l place=group=rack-a
#PBS -j o
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
./app
# site: unknown
