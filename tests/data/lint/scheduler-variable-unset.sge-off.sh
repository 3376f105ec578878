#!/bin/bash
#$ -N bench
#$ -l h_rt=01:00:00
##$ -t 1-10
python fit.py --index $SGE_TASK_ID
# site: unknown
# expect: 5 scheduler-variable-unset
