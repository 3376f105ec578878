#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4
#SBATCH --time=02:00:00
#SBATCH --cpus-per-task=8
srun python train.py --num_workers 8
# site: unknown
