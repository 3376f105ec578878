#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
python train.py \
  --epochs 40 \
  # --lr 0.1 \
  --seed 3
# site: unknown
# expect: 7 continuation-missing
