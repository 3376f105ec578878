#!/bin/bash
#$ -cwd
#$ -l h_rt=1:00:00
#$ -o logs/$JOB_ID.log
python train.py
# site: unknown
