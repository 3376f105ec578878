#!/bin/bash
#PBS -l select=1:ncpus=1
#PBS -l walltime=01:00:00
#PBS -N "two"
##PBS -N "two
# Don't stop
./app
# site: unknown
