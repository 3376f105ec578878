#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
srun ./app
exit 0
# site: unknown
# expect: 4 status-lost
