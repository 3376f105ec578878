#!/bin/bash
#PBS -l ncpus=12
#PBS -l storage=scratch/wd
#PBS -l walltime=01:00:00
python train.py
# site: unknown
# expect: 5 submit-folder-not-entered
