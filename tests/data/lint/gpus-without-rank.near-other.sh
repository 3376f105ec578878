#!/bin/bash
#SBATCH -N 1 --gpus-per-node=4 --exclusive --time=10
srun python generate.py --tensor-parallel 4
# site: unknown
