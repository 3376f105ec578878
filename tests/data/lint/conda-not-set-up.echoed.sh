#!/bin/sh
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load cuda/11.2
echo 'conda activate a'
conda activate a
python train.py
# site: unknown
# expect: 6 conda-not-set-up
