#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
NUMA_PER_RANK=2
source "$HOME/jobscripts/shared.sh"
srun -n "$NUM_RANKS" ./app
# site: unknown
