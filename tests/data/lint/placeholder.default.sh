#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app "${DATA:-xxx}"
# site: unknown
# expect: 4 placeholder
