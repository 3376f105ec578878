#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
python -m torch.distributed.run --nnodes=2 train.py & ssh b c
wait
# site: unknown
