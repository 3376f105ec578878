#!/bin/bash
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
srun ./app
srun ./other
# site: unknown
