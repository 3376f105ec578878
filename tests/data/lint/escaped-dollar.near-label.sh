#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
PHASE=train
echo "\${PHASE} is" "$PHASE"
srun ./app
# site: unknown
