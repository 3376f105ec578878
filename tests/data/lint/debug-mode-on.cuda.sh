#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
export CUDA_LAUNCH_BLOCKING=1
srun python train.py
# site: unknown
# expect: 4 debug-mode-on
