#!/bin/bash
#PBS -l select=1:ncpus=8
#PBS -l walltime=01:00:00
python train.py
# site: unknown
# expect: 4 submit-folder-not-entered
