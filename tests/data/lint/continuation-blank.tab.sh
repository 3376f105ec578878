#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun \
  --ntasks=2 \	
  --cpus-per-task=2 python train.py
# site: unknown
# expect: 5 continuation-blank
