#!/bin/bash
#SBATCH --ntasks=80
#SBATCH --ntasks-per-node=40
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --nodes=2
#SBATCH --time=01:00:00
mpirun python train.py
# site: unknown
# expect: 8 ranks-share-gpus
