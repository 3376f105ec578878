#!/bin/bash
# site: unknown
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app \
  --epochs 3 \