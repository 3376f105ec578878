#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun torchrun $(cat options.txt) train.py
HOST_AND_PORT=$(cat endpoint.txt)
srun torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_id=$SLURM_JOB_ID --rdzv_endpoint=$HOST_AND_PORT train.py
# site: unknown
