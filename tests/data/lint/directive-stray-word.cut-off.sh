#!/bin/bash
#PBS -l nodes=1 :ppn=24
#PBS -l walltime=1:00:00
cd "$PBS_O_WORKDIR"
./app
# site: unknown
# expect: 2 directive-stray-word
