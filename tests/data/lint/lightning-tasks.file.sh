#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=2 --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --ntasks=1
python lightning_train.py --gpus 2
# site: unknown
# expect: 5 lightning-tasks
