#!/bin/bash
#SBATCH -N 1 --gpus-per-node=4 --exclusive --time=10
horovodrun -np 2 python train.py --fold 1
horovodrun -np 2 python train.py --fold 2
# site: unknown
