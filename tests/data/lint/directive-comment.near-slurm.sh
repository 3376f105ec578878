#!/bin/bash
#SBATCH --nodes=2 # two
#SBATCH --time=01:00:00
srun ./app
# site: unknown
