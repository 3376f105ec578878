#!/bin/bash
#SBATCH --nodes=2 --time=10
srun -N1 ./a &
srun -N1 ./b &
wait
# site: unknown
# expect: 4 status-lost
