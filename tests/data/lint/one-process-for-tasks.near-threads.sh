#!/bin/bash
#$ -cwd
#$ -pe smp 8
#$ -l h_rt=01:00:00
export OMP_NUM_THREADS=$NSLOTS
python train.py
# site: unknown
