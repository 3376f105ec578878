#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load old
module purge
module load gcc/12.2
srun ./app
# site: unknown
