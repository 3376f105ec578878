#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=4 --exclusive --time=10
horovodrun -np 4 python train.py
# site: unknown
# expect: 3 gpus-without-rank
