#!/bin/bash
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun python train.py
# site: unknown
