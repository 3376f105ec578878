#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun accelerate launch --multi_gpu train.py
# site: unknown
# expect: 4 torchrun-per-task
