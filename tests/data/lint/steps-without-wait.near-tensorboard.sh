#!/bin/bash
#SBATCH --nodes=1 --time=10
tensorboard --logdir runs &
sleep 10
python a.py
# site: unknown
