#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=128
#SBATCH --gpus=1
#SBATCH --cpus-per-gpu=70
srun --mpi=pmix ./app
# site: olivia
# expect: 5 tasks-over-cpus-per-gpu
