#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun bash -c 'python train.py
# site: unknown
# expect: 4 shell-syntax
