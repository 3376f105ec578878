#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
torchrun --nproc_per_node=4 --epochs 40 --warmup_epochs 5 train.py
# site: unknown
# expect: 4 launcher-option-unknown
