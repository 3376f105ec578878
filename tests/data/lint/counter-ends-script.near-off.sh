#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -e
N=0
set +e
((N++))
set -e
srun ./app
# site: unknown
