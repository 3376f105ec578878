#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --exclusive
#SBATCH --time=01:00:00
python train.py
# site: unknown
