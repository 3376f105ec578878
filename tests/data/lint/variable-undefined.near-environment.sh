#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --export=ALL
srun ./app "$DATASET"
# site: unknown
