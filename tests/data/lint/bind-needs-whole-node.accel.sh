#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --partition=accel
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --gpus-per-node=2
#SBATCH --time=01:00:00
srun --mpi=pmix --cpu-bind=map_cpu:0,72 ./app
# site: olivia
# expect: 8 bind-needs-whole-node
