#!/bin/bash
#$ -S /bin/bash
#$ -N fit
python train.py --batch $SLURM_ARRAY_TASK_ID
# site: unknown
# expect: 4 scheduler-variable-foreign
