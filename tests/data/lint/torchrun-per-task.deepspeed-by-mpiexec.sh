#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
mpiexec -n 8 --ppn 4 deepspeed train.py
# site: unknown
# expect: 7 torchrun-per-task
