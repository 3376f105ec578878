#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=8
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
python collect.py samples
snakemake --cores 8
# site: unknown
