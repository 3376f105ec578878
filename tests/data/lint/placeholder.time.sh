#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=XX:XX:XX
srun ./app
# site: unknown
# expect: 3 placeholder
