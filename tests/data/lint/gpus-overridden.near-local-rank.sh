#!/bin/bash
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
srun bash -c 'export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID; ./app'
# site: unknown
