#!/bin/bash
#SBATCH --account=def-someuser
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app
# site: unknown
# expect: 2 placeholder
