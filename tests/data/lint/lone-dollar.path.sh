#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export OUT=/tmp/run-$
srun ./app $OUT
# site: unknown
# expect: 4 lone-dollar
