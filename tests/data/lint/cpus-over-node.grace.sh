#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --cpus-per-task=72
export SRUN_CPUS_PER_TASK=72
srun --mpi=pmix ./app
# site: olivia
# expect: 9 cpus-over-node
