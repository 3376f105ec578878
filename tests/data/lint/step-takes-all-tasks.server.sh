#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=01:00:00
srun -N1 -w node1 ./server &
srun -n1 ./client
wait
# site: unknown
# expect: 5 step-takes-all-tasks
# expect: 6 status-lost
