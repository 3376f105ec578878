#!/bin/bash
#SBATCH --nodes=2 --time=10 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8
HEAD=$(hostname) PORT=$((20000 + SLURM_JOB_ID % 100))
srun bash -c 'torchrun \
  --nnodes=$SLURM_NNODES --nproc_per_node=4 --rdzv_backend=c10d \
  --rdzv_endpoint=$HEAD:$PORT t.py'
# site: unknown
# expect: 6 variable-not-exported
