#!/bin/bash
#PBS -l select=1:ncpus=8
#PBS -l walltime=01:00:00
#PBS -d /data
python train.py
# site: unknown
