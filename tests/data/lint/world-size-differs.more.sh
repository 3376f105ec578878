#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
mpirun python train.py --world_size=16
# site: unknown
# expect: 5 world-size-differs
