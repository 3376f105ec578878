#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
export CUDA_LAUNCH_BLOCKING=1
./smoke_test
unset CUDA_LAUNCH_BLOCKING
srun python train.py
# site: unknown
