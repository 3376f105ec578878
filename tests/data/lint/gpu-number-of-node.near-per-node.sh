#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8 --time=10
srun --cpus-per-task=8 bash -c 'CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python train.py'
# site: unknown
