#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun --exact -n1 ./app 1 &
first=$!
wait $first
# site: unknown
