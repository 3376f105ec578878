#!/bin/bash
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16
#SBATCH --time=1:00:00
gmx grompp -f md.mdp -o a.tpr
gmx mdrun -ntmpi 4 -ntomp 4 -s a.tpr
gmx mdrun -ntomp 4 -s b.tpr
# site: unknown
