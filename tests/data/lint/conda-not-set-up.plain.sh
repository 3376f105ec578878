#!/bin/bash
#SBATCH --time=01:00:00
conda activate train
python train.py
# site: unknown
# expect: 3 conda-not-set-up
