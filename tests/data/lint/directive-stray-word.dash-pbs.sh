#!/bin/bash
#PBS –l nodes=1:ppn=4
#PBS -l walltime=01:00:00
cd $PBS_O_WORKDIR
./app
# site: unknown
# expect: 2 directive-stray-word
