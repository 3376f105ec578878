#!/bin/bash
#SBATCH --nodes=1 --time=10
cd /scratch/me
srun python train.py
MODEL.weights=net.pt
model.depth=3
# site: unknown
# expect: 5 continuation-missing
