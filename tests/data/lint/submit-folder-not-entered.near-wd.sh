#!/bin/bash
#PBS -P ab12
#PBS -q gpuvolta
#PBS -l ncpus=12
#PBS -l walltime=01:00:00
#PBS -l wd
python train.py
# site: unknown
