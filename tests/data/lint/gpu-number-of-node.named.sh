#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-task=1 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun bash -c 'export LOCAL_RANK=$SLURM_LOCALID; python gpu_local_rank.py'
# site: unknown
# expect: 7 gpu-number-of-node
