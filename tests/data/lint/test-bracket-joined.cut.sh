#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
if [ "$1" && "$2" ]; then exit 1; fi
while [ -e a || -e b ]; do sleep 1; done
srun ./app
# site: unknown
# expect: 4 test-bracket-joined
# expect: 5 test-bracket-joined
