#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -euo pipefail
COUNT=0
for f in a b; do
  ((COUNT++))
done
srun ./app
# site: unknown
# expect: 7 counter-ends-script
