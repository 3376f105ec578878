#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
PORT=$((10000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes=4 --nproc_per_node=4 --rdzv_endpoint=$HOST:$PORT train.py
# site: unknown
