#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py \
  --epochs 40
  --lr 0.1
# site: unknown
# expect: 6 continuation-missing
