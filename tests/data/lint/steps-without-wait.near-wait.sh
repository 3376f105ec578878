#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time=01:00:00
srun --exact -n1 ./a &
wait
# site: unknown
# expect: 4 status-lost
