#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export NCCL_IB_DISABLE=1
srun ./app
# site: unknown
