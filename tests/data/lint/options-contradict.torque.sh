#!/bin/bash
#PBS -l nodes=2
#PBS -l walltime=00:10:00
#PBS -l select=1
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 2 options-contradict
