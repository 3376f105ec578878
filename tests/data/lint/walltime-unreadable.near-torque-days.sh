#!/bin/bash
#PBS -l nodes=1:ppn=4
#PBS -l walltime=2:00:00:00
cd $PBS_O_WORKDIR
./app
# site: unknown
