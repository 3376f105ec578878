#!/bin/bash
#SBATCH --nodes=2   # two nodes
#SBATCH -J "my job"
#SBATCH --time=01:00:00
srun ./app
# site: unknown
