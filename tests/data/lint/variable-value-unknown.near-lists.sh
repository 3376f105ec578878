#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export OMP_PROC_BIND=spread,close NCCL_DEBUG=info
srun ./app
# site: unknown
