#!/bin/bash -e
#SBATCH --job-name=hvd8
#SBATCH --account=project_465000000
#SBATCH --partition=standard-g
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.out

set -o pipefail
ml rocm
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export MASTER_ADDR
MASK="0xfe000000000000,0xfe00000000000000,0xfe0000,0xfe000000,0xfe,0xfe00,0xfe00000000,0xfe0000000000"
if srun --cpu-bind=mask_cpu:$MASK python -u train.py | tee train.log; then
  echo "Success"
fi
# site: lumi-g
