#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun python train.py \ 
    --epochs 3
# site: unknown
# expect: 4 continuation-blank
