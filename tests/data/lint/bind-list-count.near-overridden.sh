#!/bin/bash
#SBATCH --ntasks-per-node=8
srun -N 1 -n 3 --cpu-bind=map_cpu:1,9,17 ./app
# site: unknown
