#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
srun ./app "$DATASET"
# site: unknown
# expect: 5 variable-undefined
