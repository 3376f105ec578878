#!/bin/bash
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 1 shebang-missing
