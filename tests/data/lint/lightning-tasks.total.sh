#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=2 --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --ntasks=2
srun python train.py fit --trainer.max_epochs 3
# site: unknown
# expect: 5 lightning-tasks
