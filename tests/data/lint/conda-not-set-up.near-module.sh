#!/bin/bash
#SBATCH --time=01:00:00
module load anaconda3/2024.02
conda activate train
python train.py
# site: unknown
