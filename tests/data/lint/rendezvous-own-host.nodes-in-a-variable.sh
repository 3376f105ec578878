#!/bin/bash
#SBATCH -t 00:30:00
#SBATCH --ntasks-per-node=1
srun bash -c 'torchrun --nproc_per_node=4 --nnodes=${NODES} --rdzv_backend=c10d --rdzv_endpoint=$HOSTNAME:0 train.py'
# site: unknown
# expect: 4 rendezvous-own-host
