#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
python train.py
# site: unknown
# expect: 5 one-process-for-tasks
