#!/bin/bash
#SBATCH --account=nn9999k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=72
#SBATCH --gpus-per-node=4
#SBATCH --time=07-00:00:00
set -o errexit -o nounset -o pipefail
module load NRIS/GPU
module load CUDA/13.0.0 NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
srun --mpi=pmix --export=ALL python train.py 2>&1 | tee my.log
# site: olivia
