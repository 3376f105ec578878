#!/bin/bash
#SBATCH --time=01:00:00
#sbatch -p gpu train.sbatch
srun ./app
# site: unknown
