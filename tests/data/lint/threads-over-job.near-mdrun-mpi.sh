#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=8
#SBATCH --time=1:00:00
srun --cpus-per-task=16 gmx_mpi mdrun -ntomp 16
# site: unknown
