#!/bin/bash
#SBATCH -N 1
#SBATCH -w a1,a2
#SBATCH --time=01:00:00
python train.py
# site: unknown
# expect: 3 node-list-too-long
