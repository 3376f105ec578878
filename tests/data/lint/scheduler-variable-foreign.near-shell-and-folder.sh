#!/bin/bash
#$ -S /bin/bash
#$ -cwd
#$ -V
python train.py --batch $SLURM_ARRAY_TASK_ID
# site: unknown
