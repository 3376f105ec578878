#!/bin/bash
#$ -S /bin/bash
python train.py --batch $SLURM_ARRAY_TASK_ID
# site: unknown
