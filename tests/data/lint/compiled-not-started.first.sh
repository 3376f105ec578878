#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
mpicc -o build/heat_v3 heat.c
cd build || exit
mpirun -np 1 ./heat_v2 in.txt
# site: unknown
# expect: 6 compiled-not-started
