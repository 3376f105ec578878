#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export NCCL_BLOCKING_WAIT=1 TORCH_NCCL_BLOCKING_WAIT=1 NCCL_ALGO=Ring
srun ./app
# site: unknown
