#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --nodes=1 --ntasks=1 torchrun --nnodes=1 --nproc_per_node=4 prepare.py
srun torchrun --nnodes=2 --nproc_per_node=4 $RENDEZVOUS train.py
srun torchrun --nnodes=2 --nproc_per_node=4 --master_addr="$head_node" train.py
# site: unknown
# expect: 9 variable-undefined
