#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun python3 train.py
# site: unknown
