#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun deepspeed --hostfile hosts --num_nodes 2 --num_gpus 8 train.py
# site: unknown
# expect: 7 torchrun-per-task
