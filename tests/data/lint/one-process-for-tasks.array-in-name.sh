#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
python -u dataset/make_arrays.py
# site: unknown
# expect: 7 one-process-for-tasks
