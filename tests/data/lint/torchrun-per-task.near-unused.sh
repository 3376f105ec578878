#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun bash -c 'export LAUNCHER="python -m torch.distributed.launch --nproc_per_node 4 "
exec python train.py'
# site: unknown
