#!/bin/bash
#SBATCH -A abc123
#SBATCH -p batch
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --gpus-per-task=1
#SBATCH --gpu-bind=closest
#SBATCH --time=01:00:00
export MASTER_ADDR=$(hostname -i) MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun python3 train.py
# site: frontier
# expect: - directive-missing
