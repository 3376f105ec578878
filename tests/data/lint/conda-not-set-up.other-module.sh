#!/bin/bash
#SBATCH --time=01:00:00
module load cuda/12.4
conda activate train
python train.py
# site: unknown
# expect: 4 conda-not-set-up
