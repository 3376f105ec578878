#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
python make_input.py
srun lmp -in in.melt
# site: unknown
