#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=01:00:00
srun ./train &
srun --overlap --ntasks=1 ./watch
wait
# site: unknown
# expect: 6 status-lost
