#!/bin/bash
#PBS -t 1-4 -l walltime=1:12:00:00
cd $PBS_O_WORKDIR
./app $PBS_ARRAYID
# site: unknown
