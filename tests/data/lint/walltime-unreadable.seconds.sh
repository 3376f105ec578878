#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=00:30
srun ./app
# site: unknown
# expect: 3 walltime-unreadable
