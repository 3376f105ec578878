#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
#SBATCH --constraint="[rack_a]"
srun ./app
# site: unknown
