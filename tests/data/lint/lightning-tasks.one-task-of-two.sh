#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --ntasks-per-node=2 --gpus-per-node=2 --cpus-per-task=8 --time=10
export SRUN_CPUS_PER_TASK=8
srun python train.py fit --trainer.devices=2
# site: unknown
# expect: 4 lightning-tasks
