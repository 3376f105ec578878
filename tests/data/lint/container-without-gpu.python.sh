#!/bin/bash
#SBATCH --gpus=1
#SBATCH --time=01:00:00
apptainer exec train.sif python train.py
# site: unknown
# expect: 4 container-without-gpu
