#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
python3 -u train.py --epochs 3
# site: unknown
# expect: 5 one-process-for-tasks
