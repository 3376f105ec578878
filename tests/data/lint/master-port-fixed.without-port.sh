#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
head_node_ip=$(hostname --ip-address)
ARGS=(--nnodes=2 --nproc_per_node=4 --rdzv_backend=c10d)
ARGS+=(--rdzv_id=$SLURM_JOB_ID --rdzv_endpoint="$head_node_ip")
srun torchrun "${ARGS[@]}" train.py
# site: unknown
# expect: 10 master-port-fixed
