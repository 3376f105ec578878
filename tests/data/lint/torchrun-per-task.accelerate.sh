#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun accelerate launch --num_machines 2 --num_processes 8 --machine_rank $RANK train.py
# site: unknown
# expect: 8 torchrun-per-task
# expect: 8 variable-undefined
