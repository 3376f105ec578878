#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ -f ckpt.pt ]; then
  python train.py --resume
else
  python train.py
# site: unknown
# expect: 4 shell-syntax
