#!/bin/bash
#SBATCH --nodes=${NODES}
srun ./app
# site: unknown
# expect: 2 directive-variable
