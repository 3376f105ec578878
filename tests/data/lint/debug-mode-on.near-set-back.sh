#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
if [ -n "$DEBUG" ]; then export CUDA_LAUNCH_BLOCKING=1; else export CUDA_LAUNCH_BLOCKING=0; fi
srun python train.py
# site: unknown
