#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
set -e
i=0
let i++ # one more
srun ./app
# site: unknown
# expect: 6 counter-ends-script
