#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export MIOPEN_USER_DB=/tmp/db
srun ./app
# site: unknown
# expect: 4 variable-name-unknown
