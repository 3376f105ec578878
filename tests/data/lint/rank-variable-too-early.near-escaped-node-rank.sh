#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun bash -c 'torchrun --nnodes=2 --nproc_per_node=4 --node_rank $SLURM_NODEID --rdzv_backend c10d --rdzv_endpoint a:6777 train.py'
# site: unknown
# expect: 5 master-port-fixed
