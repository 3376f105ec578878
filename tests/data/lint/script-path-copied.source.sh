#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
source "$(dirname "$0")/env.sh"
srun ./app
# site: unknown
# expect: 4 script-path-copied
