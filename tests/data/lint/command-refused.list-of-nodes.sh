#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=4
N=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))
srun -c $SLURM_JOB_CPUS_PER_NODE ./app $N
srun --ntasks-per-node=1 torchrun --nnodes=2 --rdzv-backend=c10d \
    --nproc_per_node=$SLURM_TASKS_PER_NODE \
    --rdzv-endpoint=node1:$((20000 + SLURM_JOB_ID % 9999)) train.py
# site: unknown
# expect: 3 command-refused
# expect: 4 command-refused
# expect: 6 command-refused
