#!/bin/bash
#SBATCH --nodes=2
#SBATCH --time=01:00:00
module load rocm
# srun ./app
# site: unknown
# expect: - nothing-started
