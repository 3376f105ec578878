#!/bin/bash
echo "$0"
#PBS -l nodes=1:ppn=1
#PBS -l walltime=0:40:00
#PBS -j oe
cd "$PBS_O_WORKDIR"
./app
# site: unknown
# expect: 3 directive-ignored
