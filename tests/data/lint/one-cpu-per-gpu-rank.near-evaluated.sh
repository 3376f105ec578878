#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
run="srun -N1 -n4 -c 16 python train.py"
eval $run
# site: unknown
