#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export MASTER_ADDR=$(hostname)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun python train.py
# site: unknown
