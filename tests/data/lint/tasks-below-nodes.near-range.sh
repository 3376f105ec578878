#!/bin/bash
#SBATCH --nodes=1-4
#SBATCH --ntasks=2
#SBATCH --time=01:00:00
srun ./app
# site: unknown
