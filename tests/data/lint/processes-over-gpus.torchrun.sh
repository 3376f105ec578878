#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
torchrun --standalone --nproc_per_node=8 train.py
# site: unknown
# expect: 6 processes-over-gpus
