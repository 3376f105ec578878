#!/bin/bash
#SBATCH --time=01:00:00
#SBATCH -a 0,3,7%2
#SBATCH -o run-%A.out
#SBATCH -e run-%A-%%a.err
srun ./a.out
# site: slurm-22.05.yaml
# expect: 4 array-output-shared
# expect: 5 array-output-shared
