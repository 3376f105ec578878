#!/bin/sh
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
alias ls='ls -l'
alias run='srun -c4'
run ./app
# site: unknown
