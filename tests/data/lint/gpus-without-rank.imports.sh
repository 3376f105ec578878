#!/bin/bash
#SBATCH -N 2 --gpus-per-node=4 --exclusive --time=10
srun python new_callbacks.py
# site: unknown
# expect: 3 gpus-without-rank
