#!/bin/bash
read -r MASTER_ADDR < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export MASTER_ADDR
srun python train.py
# site: unknown
