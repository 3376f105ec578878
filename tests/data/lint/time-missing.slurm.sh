#!/bin/bash
#SBATCH --nodes=1
srun ./app
# site: unknown
# expect: - time-missing
