#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py \ 
    data.max_length=2048
# site: unknown
# expect: 4 continuation-blank
