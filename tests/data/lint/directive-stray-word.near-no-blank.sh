#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00 # one hour
srun ./app
# site: unknown
