#!/bin/bash
#PBS -l select=1:ncpus=8
#PBS -l walltime=01:00:00
cd "$PBS_O_WORKDIR"
python train.py
# site: unknown
