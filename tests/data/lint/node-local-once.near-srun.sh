#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun --ntasks=2 --ntasks-per-node=1 mkdir -p /tmp/cache
mkdir -p /scratch/me/tmp
srun ./app
# site: unknown
