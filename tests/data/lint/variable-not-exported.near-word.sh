#!/bin/bash
#SBATCH --ntasks=1 --cpus-per-task=8 --time=01:00:00
train=1
srun -c8 bash -c 'python train.py train'
# site: unknown
