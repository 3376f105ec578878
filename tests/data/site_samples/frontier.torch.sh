#!/bin/bash
#SBATCH -A abc123
#SBATCH -p batch
#SBATCH -N 2
#SBATCH -t 00:10:00
#SBATCH --network=disable_rdzv_get
export MASTER_ADDR=$(hostname -i) MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export NCCL_SOCKET_IFNAME=hsn0
srun -N 2 -n 16 -c 7 --gpus-per-task=1 --gpu-bind=closest python3 -u train.py
# A form of OLCF's page on PyTorch.
