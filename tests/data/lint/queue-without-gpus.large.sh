#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=large
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --exclusive
#SBATCH --time=01:00:00
srun --mpi=pmix ./app
# site: olivia
# expect: 3 queue-without-gpus
