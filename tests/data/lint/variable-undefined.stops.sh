#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
srun ./app
echo "finished ${expName}"
# site: unknown
# expect: 6 variable-undefined
