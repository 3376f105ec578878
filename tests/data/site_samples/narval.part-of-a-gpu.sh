#!/bin/bash
#SBATCH --account=def-jsmith
#SBATCH --gres=gpu:a100_4g.20gb:1
#SBATCH --cpus-per-task=6
#SBATCH --mem=62gb
#SBATCH --time=24:00:00
hostname
nvidia-smi
# A form of the Alliance's page on parts of GPUs.
