#!/bin/bash
export MASTER_PORT=$((30000 + SLURM_JOB_ID % 10000))
srun python train.py
# site: unknown
# expect: 2 master-port-ephemeral
