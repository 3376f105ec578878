#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --gpus-per-node=1 --time=01:00:00
gmx mdrun -ntmpi 1 -ntomp 8
# site: unknown
