#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
module load conda/2022-09-08
srun ./app
# site: unknown
# expect: 4 module-old
