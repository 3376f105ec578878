#!/bin/bash
#PBS -l select=1:ncpus=4:mem=4gb+2:ncpus=8:host=a
#PBS -l place=scatter:excl
#PBS -l walltime=01:00:00
#PBS -J 1-9:2%3
#PBS -W depend=afterok:12
cd $PBS_O_WORKDIR
./app
# site: unknown
