#!/bin/bash
#SBATCH --nodes=2 --time=10 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8
ARGS=(--nproc_per_node=4)
ARGS+=(--max-restarts=1)
srun torchrun "${ARGS[@]}" t.py
# site: unknown
# expect: 5 torchrun-one-node
