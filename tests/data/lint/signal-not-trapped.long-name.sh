#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
#SBATCH --signal=SIGTERM@60
set -e
save() { touch stop; }
trap save SIGTERM
srun ./app &
wait
# site: unknown
# expect: 4 signal-not-trapped
