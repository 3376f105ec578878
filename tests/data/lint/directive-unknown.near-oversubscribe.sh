#!/bin/bash
#SBATCH -s -h
#SBATCH --oversubscribe
#SBATCH --tasks-per-node=4
#SBATCH --time=01:00:00
srun -u -K1 --immediate=60 ./app
# site: unknown
