#!/bin/bash
#SBATCH --nodes=1
#SBATCH --time=01:00:00
export EBU_USER_PREFIX=/project/me/eb
module load LUMI/24.03 partition/G
srun ./app
# site: unknown
