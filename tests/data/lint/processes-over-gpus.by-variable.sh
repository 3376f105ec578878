#!/bin/bash
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
deepspeed --num_gpus $SLURM_NTASKS_PER_NODE train.py
# site: unknown
# expect: 6 processes-over-gpus
