#!/bin/bash
#PBS -l select=1:ncpus=4
#PBS -l walltime=01:00:00
#SBATCH: for another cluster, the user's
./app
# site: unknown
