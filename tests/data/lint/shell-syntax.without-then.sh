#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ -f ckpt.pt ]
  python train.py --resume
fi
python train.py > > log
# site: unknown
# expect: 6 shell-syntax
