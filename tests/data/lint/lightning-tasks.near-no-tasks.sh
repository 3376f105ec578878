#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=2 --cpus-per-task=8
#SBATCH --time=02:00:00
python train.py fit --trainer.devices=2
# site: unknown
