#!/bin/bash
#SBATCH --nodes=1 --exclusive
#SBATCH --time=02:00:00
python train.py --num_workers 80
# site: unknown
