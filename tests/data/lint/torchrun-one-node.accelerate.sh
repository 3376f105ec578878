#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
accelerate launch --num_machines 2 --num_processes 8 --machine_rank 0 train.py
# site: unknown
# expect: 7 torchrun-one-node
