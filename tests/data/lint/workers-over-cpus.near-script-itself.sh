#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=4 --cpus-per-task=2
#SBATCH --time=02:00:00
python train.py --num_gpus 4 --num_workers 8
srun ./app
# site: unknown
