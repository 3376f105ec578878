#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=B:USR1@120
set -e
trap 'touch stop' USR1 EXIT
srun ./app &
wait
# site: unknown
