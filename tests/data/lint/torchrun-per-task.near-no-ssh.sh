#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun bash -c 'deepspeed --hostfile hosts --no_ssh --node_rank=$SLURM_NODEID --master_addr=$HEAD train.py'
# site: unknown
