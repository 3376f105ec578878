#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=02:00:00
set -o pipefail
./train | tee train.log
# site: unknown
