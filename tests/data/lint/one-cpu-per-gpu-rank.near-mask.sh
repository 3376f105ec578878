#!/bin/bash
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --time=01:00:00
srun --cpu-bind=mask_cpu:0xf,0xf0 python train.py
# site: unknown
