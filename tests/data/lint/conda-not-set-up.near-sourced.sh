#!/bin/bash
#SBATCH --time=01:00:00
source ~/miniforge3/etc/profile.d/conda.sh
conda activate train
python train.py
# site: unknown
