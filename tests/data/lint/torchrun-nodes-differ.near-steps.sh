#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --nodes=1 --ntasks=1 torchrun --nnodes=1 --nproc_per_node=4 prepare.py
srun --ntasks=2 torchrun --nnodes=2 --nproc_per_node=4 --rdzv_endpoint="$head_node:$((10000 + SLURM_JOB_ID % 10000))" a.py
srun torchrun --nnodes=1:4 --nproc_per_node=4 --rdzv_endpoint="$head_node:$((10000 + SLURM_JOB_ID % 10000))" train.py
srun torchrun --nnodes="$SLURM_NNODES" --nproc_per_node=4 --rdzv_endpoint="$head_node:$((10000 + SLURM_JOB_ID % 10000))" t.py
# site: unknown
