#!/bin/bash
#SBATCH --gres=gpu:2
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
torchrun train.py
# site: unknown
# expect: 5 gpus-idle
