#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:00:00
srun --cpu-bind=none
python train.py
# site: unknown
# expect: 5 srun-without-program
