#!/bin/bash
#SBATCH --nodes=1 --time=10
if [ -z "$1"]; then exit 1; fi
srun ./app
# site: unknown
# expect: 3 test-bracket-joined
