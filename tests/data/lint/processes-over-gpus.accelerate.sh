#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
accelerate launch --num_processes 8 --num_cpu_threads_per_process 2 train.py
# site: unknown
# expect: 6 processes-over-gpus
