#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4
N=$((SLURM_NNODES * ${SLURM_TASKS_PER_NODE%%(*}))
echo "$SLURM_TASKS_PER_NODE tasks, on each node $SLURM_JOB_CPUS_PER_NODE"
srun ./app -n $SLURM_TASKS_PER_NODE $N
# site: unknown
