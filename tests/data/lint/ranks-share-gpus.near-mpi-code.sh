#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=8
#SBATCH --time=01:00:00
srun gmx_mpi mdrun
# site: unknown
