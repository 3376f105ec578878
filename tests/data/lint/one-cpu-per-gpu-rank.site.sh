#!/bin/bash
#SBATCH --account=project_465000001
#SBATCH --partition=small-g
#SBATCH --gpus-per-node=1
#SBATCH --time=01:00:00
srun python train.py
# site: lumi-g
# expect: 4 one-cpu-per-gpu-rank
