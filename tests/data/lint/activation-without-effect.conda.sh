#!/bin/bash
#SBATCH --time=01:00:00
source activate .venv/bin/activate
python train.py
# site: unknown
# expect: 3 activation-without-effect
