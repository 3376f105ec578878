#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun python lightning_four.py
# site: unknown
# expect: 4 lightning-tasks
