#!/bin/bash
#SBATCH --nodes=2 --time=10 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8
if [ -n "$1" ]; then A=localhost; else A=$(hostname); fi
export MASTER_ADDR=$A
srun python t.py
# site: unknown
