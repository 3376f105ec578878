#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --gres=gpu:4
#SBATCH --time=01:00:00
module load python
python3 -u train.py --epochs 3
# site: unknown
# expect: 6 one-process-for-tasks
