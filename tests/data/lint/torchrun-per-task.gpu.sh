#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun python -m torch.distributed.launch --nproc_per_node=gpu train.py
# site: unknown
# expect: 5 torchrun-per-task
