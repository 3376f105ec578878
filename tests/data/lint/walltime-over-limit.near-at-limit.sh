#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=7-00
srun --mpi=pmix ./app
# site: olivia
