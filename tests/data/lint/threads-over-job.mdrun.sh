#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=8
#SBATCH --time=1:00:00
gmx mdrun -ntmpi 4 -ntomp 4 -s a.tpr
# site: unknown
# expect: 4 threads-over-job
