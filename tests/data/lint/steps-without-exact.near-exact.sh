#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time=01:00:00
srun --exact -n1 ./a &
srun --overlap -n1 ./b &
wait
# site: unknown
# expect: 5 status-lost
