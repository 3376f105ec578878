#!/bin/bash
module load rocm
#SBATCH --nodes=2
srun ./app
# site: unknown
# expect: 3 directive-ignored
