#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app
# site: unknown
