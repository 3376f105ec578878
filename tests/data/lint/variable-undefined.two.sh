#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun python train.py --data $dataset --out $RESULTS
# site: unknown
# expect: 4 variable-undefined
