#!/bin/bash
#SBATCH --ntasks=8
#SBATCH --time=01:00:00
for i in 1 2 3; do
  srun -n1 ./a $i &
done
wait
# site: unknown
# expect: 5 steps-without-exact
# expect: 5 status-lost
