#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun --exact -n1 ./a &
wait
srun --exact -n1 ./b &
wait $!
srun --exact -n1 ./c &
wait
# site: unknown
# expect: 8 status-lost
