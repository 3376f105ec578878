#!/bin/bash
#SBATCH -N 2 --gpus-per-node=4 --exclusive --time=10
horovodrun -np $1 python train.py
# site: unknown
