#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
mpirun -np 4
    python train.py
# site: unknown
# expect: 5 srun-without-program
