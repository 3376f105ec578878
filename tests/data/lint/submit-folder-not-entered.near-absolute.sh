#!/bin/bash
#PBS -l select=1:ncpus=8
#PBS -l walltime=01:00:00
python /data/train.py
python $HOME/train.py
# site: unknown
