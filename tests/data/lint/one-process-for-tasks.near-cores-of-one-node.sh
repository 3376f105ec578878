#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
python3 -u train.py --epochs 3
# site: unknown
