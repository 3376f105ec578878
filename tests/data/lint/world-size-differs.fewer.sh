#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun python -u -m chat.train \
  --distributed-world-size 2
# site: unknown
# expect: 6 world-size-differs
