#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
export MIOPEN_USER_DB_PATH=/tmp/cache
mkdir -p $MIOPEN_USER_DB_PATH
# srun ./app
# site: unknown
# expect: - nothing-started
# expect: 5 node-local-once
