#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --exclusive
#SBATCH --time=1:00:00
gmx mdrun -ntomp 16
# site: unknown
