#!/bin/bash
#PBS -l nodes=1:ppn=2    ;the nodes
#PBS -l walltime=48:00:00
cd $PBS_O_WORKDIR
mpiexec ./app
# site: unknown
# expect: 2 directive-stray-word
