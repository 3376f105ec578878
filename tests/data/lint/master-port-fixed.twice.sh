#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
export MASTER_PORT=29500
torchrun --nproc_per_node=2 --rdzv_endpoint=$HOSTNAME:29500 train.py
# site: unknown
# expect: 5 master-port-fixed
