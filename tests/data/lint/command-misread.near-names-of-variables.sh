#!/bin/bash
#SBATCH --nodes=1 --time=10
train=/scratch/me/train
for SPLIT in train; do srun ./app "${!SPLIT}"; done
# site: unknown
