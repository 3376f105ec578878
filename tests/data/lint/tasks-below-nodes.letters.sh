#!/bin/bash
#SBATCH -n 2 -N 3
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 tasks-below-nodes
