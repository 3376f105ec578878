#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
. ./settings.sh
srun python train.py --data $dataset
# site: unknown
