#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
HOSTFILE=hosts.$SLURM_JOB_ID
scontrol show hostnames "$SLURM_JOB_NODELIST" > "$HOSTFILE"
deepspeed --hostfile "$HOSTFILE" train.py
# site: unknown
# expect: 8 hostfile-without-slots
