#!/bin/bash
#SBATCH -p gpu
#SBATCH --time=01:00:00
python train.py
# site: unknown
# expect: 2 queue-of-gpus
