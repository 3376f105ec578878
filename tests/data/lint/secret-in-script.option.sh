#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
srun ./app --api-key=0123456789abcdef0123
# site: unknown
# expect: 4 secret-in-script
