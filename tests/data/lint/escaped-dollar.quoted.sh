#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
DATA=/scratch/data
srun python train.py --data '$DATA'
# site: unknown
# expect: 5 escaped-dollar
