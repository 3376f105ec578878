#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
# cd /gpfs/alpine/proj-shared/abc
cd /gpfs/alpines/abc
srun ./app --data=/mnt/gpfs/alpine/abc
# site: unknown
