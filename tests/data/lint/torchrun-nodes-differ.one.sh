#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
srun python -m torch.distributed.run --nnodes 1 --nproc_per_node 4 train.py
# site: unknown
# expect: 7 torchrun-nodes-differ
