#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-task=1 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun --ntasks-per-node=1 --gpus-per-task=4 torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$(hostname):$((20000 + SLURM_JOB_ID % 10000))" gpu_local_rank.py
# site: unknown
