#!/bin/bash
#SBATCH --time=01:00:00
python train.py --seed 1 | tee 1.log &
python train.py --seed 2
# site: unknown
# expect: 3 steps-without-wait
# expect: 3 status-lost-in-pipe
