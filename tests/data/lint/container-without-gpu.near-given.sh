#!/bin/bash
#SBATCH --gpus=1
#SBATCH --time=01:00:00
apptainer exec prepare.sif python prepare.py
apptainer exec --nv train.sif python train.py
# site: unknown
