#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
echo begin
srun python train.py
# site: unknown
