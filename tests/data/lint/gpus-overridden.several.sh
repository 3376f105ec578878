#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
CUDA_VISIBLE_DEVICES=1 python a.py
CUDA_VISIBLE_DEVICES=1 python b.py
# site: unknown
# expect: 5 gpus-overridden
