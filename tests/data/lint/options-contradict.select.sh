#!/bin/bash
#PBS -l walltime=01:00:00
#PBS -l select=1:ncpus=8
#PBS -l mem=64gb
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 4 options-contradict
