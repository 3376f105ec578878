#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
CACHE=/tmp/${USER}-cache
rm -rf $CACHE
srun ./app
# site: unknown
# expect: 5 node-local-once
