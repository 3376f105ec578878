#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=180
#SBATCH --qos=devel
srun --mpi=pmix ./app
# site: olivia
# expect: 8 walltime-over-limit
