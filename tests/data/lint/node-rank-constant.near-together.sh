#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
torchrun --nnodes=2 --node_rank=0 --nproc_per_node=2 --master_addr=$HOSTNAME train.py &
torchrun --nnodes=2 --node_rank=1 --nproc_per_node=2 --master_addr=$HOSTNAME train.py
wait
# site: unknown
# expect: 7 status-lost
