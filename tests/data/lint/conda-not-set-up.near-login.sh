#!/bin/bash -l
#SBATCH --time=01:00:00
conda activate train
python train.py
# site: unknown
