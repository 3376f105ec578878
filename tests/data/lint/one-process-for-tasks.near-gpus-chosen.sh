#!/bin/bash
#SBATCH --nodes=1
#SBATCH --gres=gpu:8
#SBATCH --ntasks-per-node=8
#SBATCH --time=01:00:00
python train.py --GPUS=0,1,2,3,4,5,6,7
# site: unknown
