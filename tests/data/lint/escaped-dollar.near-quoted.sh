#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export DATA=/scratch/data
srun python train.py --data "$DATA" 'price=$x'
srun bash -c 'python train.py $DATA'
# site: unknown
