#!/bin/bash
#SBATCH --time=10 --gres=gpu:4 --cpus-per-task=8
torchrun --nproc_per_node=$SLURM_GPUS_PER_NODE a.py
# site: unknown
# expect: 3 scheduler-variable-unset
