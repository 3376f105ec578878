#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export MASTER_ADDRESS=$(hostname)
export MASTER_ADDR=$MASTER_ADDRESS NCCL_NEW_THING=1
srun ./app
# site: unknown
