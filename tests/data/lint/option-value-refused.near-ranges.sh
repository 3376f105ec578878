#!/bin/bash
#SBATCH --nodes=2-4
#SBATCH --array=3-10:2,1-1%4
#SBATCH --time=01:00:00
srun ./app
# site: unknown
