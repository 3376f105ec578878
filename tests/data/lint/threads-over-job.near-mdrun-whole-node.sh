#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=8 --qos=devel
#SBATCH --time=01:00:00 --account=a
gmx mdrun -ntmpi 2 -ntomp 64
# site: betzy
