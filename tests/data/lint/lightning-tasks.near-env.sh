#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=2 --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --ntasks-per-node=1
env -u SLURM_NTASKS python train.py fit --trainer.devices=2
# site: unknown
