#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=USR1@120
set -e
trap 'touch stop' USR1
srun ./app &
wait
# site: unknown
# expect: 4 signal-not-trapped
