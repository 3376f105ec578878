#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export MPICH_RDMA_ENABLED_CUDA=1
srun ./app
# site: unknown
# expect: 4 variable-obsolete
