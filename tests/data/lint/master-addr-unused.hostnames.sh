#!/bin/bash
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun python train.py
# site: unknown
# expect: 2 master-addr-unused
