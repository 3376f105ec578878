#!/bin/bash
#SBATCH --time=01:00:00
source ~/miniforge3/bin/activate train
source .venv/bin/activate
python train.py
# site: unknown
