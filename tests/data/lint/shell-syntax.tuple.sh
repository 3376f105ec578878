#!/bin/bash
#SBATCH --time=01:00:00
python train.py --resolutions (8,) --epochs 4
# site: unknown
# expect: 3 shell-syntax
