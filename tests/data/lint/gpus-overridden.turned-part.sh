#!/bin/bash
#SBATCH -A m1234
#SBATCH -C gpu
#SBATCH -q shared
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
export CUDA_VISIBLE_DEVICES=3,2,1,0
srun python train.py
# site: perlmutter
# expect: 9 gpus-overridden
