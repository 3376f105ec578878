#!/bin/bash
#SBATCH --nodes=1 --time=10
[ -f x] || exit 1
srun ./app
# site: unknown
# expect: 3 test-bracket-joined
