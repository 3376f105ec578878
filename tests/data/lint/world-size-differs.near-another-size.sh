#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
srun python train.py --model-parallel-world-size 2
# site: unknown
