#!/bin/bash
export MASTER_PORT=$((${SLURM_JOB_ID} % 2768 + 30000))
srun python train.py
# site: unknown
