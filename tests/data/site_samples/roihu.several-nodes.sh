#!/bin/bash
#SBATCH --account=project_2000123
#SBATCH --partition=gpularge
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=288
#SBATCH --time=01:00:00
#SBATCH --gres=gpu:gh200:4
module purge
module load python-pytorch/2.10
head=$(hostname)
port=$((20000 + SLURM_JOB_ID % 10000))
srun torchrun --nnodes="$SLURM_JOB_NUM_NODES" --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" \
  --rdzv_backend=c10d --rdzv_endpoint="$head:$port" train.py
# A form of CSC's page on several GPUs.
