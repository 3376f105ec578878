#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks-per-node=8
srun mpirun -np 8 ./app
# site: unknown
# expect: 5 torchrun-per-task
