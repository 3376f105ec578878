#!/bin/bash
#SBATCH -A m1234_g
#SBATCH -q regular
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
srun -n 8 -c 32 --gpu-bind=closest python train.py
# site: perlmutter
# expect: - directive-missing
