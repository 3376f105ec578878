#!/bin/bash
export MASTER_PORT=1${SLURM_JOB_ID:0-4}
srun python train.py
# site: unknown
