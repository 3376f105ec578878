#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
module load PyTorch/2.7.1-foss-2024a-CUDA-12.6.0
srun --mpi=pmix ./app
# site: olivia
