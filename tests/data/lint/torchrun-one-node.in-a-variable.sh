#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
LAUNCHER="python -m torch.distributed.run --nproc_per_node 4"
srun bash -c "$LAUNCHER train.py"
# site: unknown
# expect: 6 torchrun-one-node
