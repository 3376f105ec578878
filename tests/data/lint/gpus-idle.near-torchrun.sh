#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
srun --ntasks-per-node=1 python -m torch.distributed.run --standalone --nproc_per_node=4 train.py
# site: unknown
