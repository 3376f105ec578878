#!/bin/bash
#SBATCH --partition=nogpu
#SBATCH --time=01:00:00
python train.py
# site: unknown
