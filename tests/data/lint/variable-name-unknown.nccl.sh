#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export NCCL_DISABLE_IB=1
export NCCL_SOCKET_IFNAMES=hsn0
srun ./app
# site: unknown
# expect: 4 variable-name-unknown
# expect: 5 variable-name-unknown
