#!/bin/bash
#SBATCH --nodes=2 --time=10 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8
MN=''
if [ -n "$1" ]; then MN="--nnodes=2 --rdzv_endpoint=x:1"; else MN=''; fi
srun torchrun $MN --nproc_per_node=4 t.py
# site: unknown
