#!/bin/bash
#PBS -l select=1:ncpus=8
#PBS -l walltime=01:00:00
mpirun -np 8 python src/train.py --config a.yaml
# site: unknown
# expect: 4 submit-folder-not-entered
