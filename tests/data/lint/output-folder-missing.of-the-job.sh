#!/bin/bash
#$ -cwd
#$ -l h_rt=1:00:00
#$ -o logs/$JOB_NAME_$JOB_ID/out.log
python train.py
# site: unknown
# expect: 4 output-folder-missing
