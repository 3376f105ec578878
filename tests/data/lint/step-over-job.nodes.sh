#!/bin/bash
#SBATCH --nodes=1 --ntasks=8 --time=10
srun -N 2 -n 8 ./app
srun --nodes=4 ./app
# site: unknown
# expect: 3 step-over-job
