#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export SRUN_CPUS_PER_TASK=8
srun bash -c 'cd '"$PWD"'; torchrun --nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=$(hostname):0 train.py'
# site: unknown
# expect: 8 rendezvous-own-host
