#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=01:00:00
srun -K1 ./app
srun -lK1 -n 4 ./app
srun -I ./app
srun --nice ./app
srun --resv-ports --bcast ./app
srun --nice=10 ./app
# site: unknown
