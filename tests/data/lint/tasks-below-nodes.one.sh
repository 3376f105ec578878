#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 3 tasks-below-nodes
