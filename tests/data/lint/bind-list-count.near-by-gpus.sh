#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gpus=8
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
srun --cpu-bind=map_cpu:49,57,17,25,1,9,33,41 ./application
# site: unknown
