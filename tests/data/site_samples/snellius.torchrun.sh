#!/bin/bash
#SBATCH --partition=gpu_h100
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
#SBATCH --exclusive
module purge
module load 2024 NCCL/2.22.3-GCCcore-13.3.0-CUDA-12.6.0
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
srun apptainer exec --nv -B /projects/0/prjs0001 image.sif torchrun --nnodes="$SLURM_JOB_NUM_NODES" \
  --nproc_per_node=4 --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d \
  --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" train.py
# A form of SURF's AI guide for several nodes.
