#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nproc_per_node=4 \
    --nnodes=4 --rdzv_backend=c10d --rdzv_id="$SLURM_JOB_ID" \
    --rdzv_endpoint="$head_node:$((10000 + SLURM_JOB_ID % 10000))" train.py
# site: unknown
# expect: 9 torchrun-nodes-differ
