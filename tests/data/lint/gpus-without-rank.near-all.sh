#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4 --exclusive --time=10
srun python train_hvd.py
# site: unknown
