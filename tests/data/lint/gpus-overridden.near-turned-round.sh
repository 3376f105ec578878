#!/bin/bash
#SBATCH -A m1234
#SBATCH -C gpu
#SBATCH -q regular
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=01:00:00
export CUDA_VISIBLE_DEVICES=3,2,1,0  # next to the cores that Slurm gives to ranks 0 to 3
srun python train.py
# site: perlmutter
