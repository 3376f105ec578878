#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=2 --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --ntasks-per-node=1
unset SLURM_NTASKS SLURM_JOB_NAME
python train.py fit --trainer.devices=2
# site: unknown
