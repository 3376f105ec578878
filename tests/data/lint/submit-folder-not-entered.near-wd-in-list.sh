#!/bin/bash
#PBS -l ncpus=12,wd,walltime=01:00:00
python train.py
# site: unknown
