#!/bin/bash
#SBATCH --time=01:00:00
bash ~/env/bin/activate
python train.py
# site: unknown
# expect: 3 activation-without-effect
