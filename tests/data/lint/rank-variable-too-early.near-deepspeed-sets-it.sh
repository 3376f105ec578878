#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export LOCAL_RANK=$SLURM_LOCALID
deepspeed --num_gpus 4 train.py
# site: unknown
