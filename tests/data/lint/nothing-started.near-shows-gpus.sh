#!/bin/bash
#SBATCH --account=def-jsmith
#SBATCH --gpus-per-node=a100:1
#SBATCH --cpus-per-task=12
#SBATCH --time=00:10:00
hostname
nvidia-smi
# site: narval
