#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
./train
nvidia-smi | tee gpus.log
# site: unknown
