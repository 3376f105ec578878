#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load gcc/12.2
module purge
module restore mine
srun ./app
# site: unknown
