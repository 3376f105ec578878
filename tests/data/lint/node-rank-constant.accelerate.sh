#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun accelerate launch --num_machines 2 --num_processes 8 --machine_rank 0 \
    --main_process_ip $MASTER_ADDR train.py
# site: unknown
# expect: 8 node-rank-constant
