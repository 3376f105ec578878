#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun -N1 -n1 ./prepare.sh
srun -N2 ./train
srun -N1 hostname
# site: unknown
