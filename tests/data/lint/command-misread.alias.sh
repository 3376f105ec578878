#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
alias run='srun -c4'
run ./app
# site: unknown
# expect: 5 command-misread
