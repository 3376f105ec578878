#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
source ~/miniforge3/etc/profile.d/conda.sh && conda activate a
python train.py
# site: unknown
