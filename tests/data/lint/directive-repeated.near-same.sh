#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH -N 1
#SBATCH --mail-type=BEGIN
#SBATCH --mail-type=END
srun ./app
# site: unknown
