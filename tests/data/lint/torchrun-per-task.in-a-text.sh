#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun bash -c 'LAUNCHER="torchrun --standalone --nproc_per_node=4"; $LAUNCHER train.py'
# site: unknown
# expect: 5 torchrun-per-task
