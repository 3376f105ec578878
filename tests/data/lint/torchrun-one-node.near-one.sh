#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
torchrun --standalone --nproc_per_node=4 train.py
# site: unknown
