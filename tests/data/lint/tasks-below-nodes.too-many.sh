#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --ntasks=8
#SBATCH --ntasks-per-node=4
srun ./app
# site: unknown
# expect: 4 tasks-below-nodes
