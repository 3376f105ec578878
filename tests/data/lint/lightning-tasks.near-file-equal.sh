#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun python lightning_four.py
# site: unknown
