#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
shopt -s expand_aliases
alias run='srun -c4' ls='ls -l'
run ./app
# site: unknown
