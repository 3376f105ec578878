#!/bin/bash
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --array=0-9
torchrun --nproc_per_node=1 --master_port=31345 train.py
# site: unknown
# expect: 6 master-port-fixed
