#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
PORT=$((20000 + SLURM_JOB_ID))
srun python train.py --step $PORT
# site: unknown
